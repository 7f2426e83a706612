"""The verb of numbers that later runs are held against: ``baseline``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from analysis.verdicts.baseline import Draft, describe_baseline, draft_baseline
from firstflight.cli.services import Services, pass_services
from testbed.base.errors import EXIT_OK, ConfigurationError, StorageError
from testbed.base.whole_folder import new_folder
from testbed.experiment.lanes import read_lanes
from testbed.results.folder import read_manifest

REASONS_FILE = "REASONS.md"
REASONS_HEAD = "# Why this baseline is what it is\n\nWritten by `./run.sh baseline update`.\n"
LEAST_REASON = 10
"""Letters and digits: enough to rule out a shrug."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_folder = click.Path(path_type=Path)


@click.group()
def baseline() -> None:
    """Results that later runs are compared with: update, list, show."""


@baseline.command()
@click.argument("results", metavar="RESULTS", type=_folder)
@click.option("--reason", metavar="TEXT", help="Why the numbers change; kept with them.")
@click.option("--name", metavar="NAME", help="The baseline; default: the experiment's name.")
@click.option("--to", "elsewhere", type=_folder, metavar="DIR",
              help="A folder elsewhere, instead of a baseline by name.")  # fmt: skip
@click.option("--drop-cells", is_flag=True, help="Cells that RESULTS lack may go.")
@pass_services
def update(
    services: Services, /, results: Path, reason: str | None, name: str | None,
    elsewhere: Path | None, drop_cells: bool,
) -> int:  # fmt: skip
    """Make RESULTS the baseline of their experiment.

    Shows what changes, and asks for the reason unless --reason gives it.
    """
    if reason is not None or not sys.stdin.isatty():
        reason = _checked(reason)
    target = elsewhere or services.baselines / _name_of(results, name)
    _refuse_foreign(target)
    draft = draft_baseline(results, target, drop_cells=drop_cells)
    click.echo(draft.changes)
    reason = reason or _checked(click.prompt("Why shall the baseline be this from now on"))
    _write(target, draft, f"- {services.now():%Y-%m-%d}: {reason}\n  ({draft.origin})\n")
    click.echo(f"{target} is now: {draft.origin}")
    return EXIT_OK


@baseline.command("list")
@pass_services
def list_baselines(services: Services, /) -> int:
    """List the baselines, one a line."""
    folders = services.baselines.iterdir() if services.baselines.is_dir() else ()
    for folder in sorted(folder for folder in folders if (folder / REASONS_FILE).is_file()):
        click.echo(describe_baseline(folder))
    return EXIT_OK


@baseline.command()
@click.argument("name")
@pass_services
def show(services: Services, /, name: str) -> int:
    """Show what the baseline NAME is, and the reason of its last update."""
    folder = services.baselines / _checked_name(name)
    if not (folder / REASONS_FILE).is_file():
        raise ConfigurationError([
            f"there is no baseline {name} in {services.baselines}; "
            "./run.sh baseline list names all"
        ])  # fmt: skip
    click.echo(describe_baseline(folder))
    click.echo((folder / REASONS_FILE).read_text(encoding="utf-8").partition("\n\n")[2].rstrip())
    return EXIT_OK


def baseline_of(services: Services, results: Path) -> Path | None:
    """Return the baseline of the experiment of ``results``, if there is one."""
    folder = services.baselines / _name_of(results, None)
    return folder if (folder / REASONS_FILE).is_file() else None


def _name_of(results: Path, chosen: str | None) -> str:
    if chosen is not None:
        return _checked_name(chosen)
    lanes = read_lanes(results)
    if lanes:
        raise ConfigurationError(
            [f"{results} holds the results of several kernel versions ({', '.join(lanes)}), which "
             f"are never pooled; name one, such as {results / lanes[0]}"]
        )  # fmt: skip
    return _checked_name(str(read_manifest(results).get("experiment", {}).get("name")))


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            [f"{name!r} cannot name a baseline; use letters, digits, '.', '_' and '-'"]
        )
    return name


def _checked(reason: str | None) -> str:
    text = "".join(c if c.isprintable() else " " for c in reason or "")
    text = " ".join(text.split())
    if sum(c.isalnum() for c in text) < LEAST_REASON:
        raise ConfigurationError(
            ["a baseline is changed for a reason, which is kept with it: "
             '--reason "what changed, and why the new numbers are right"']
        )  # fmt: skip
    return text


def _refuse_foreign(target: Path) -> None:
    """Never replace a folder that no baseline is in."""
    if target.exists() and not (target / REASONS_FILE).is_file():
        raise ConfigurationError(
            [f"{target} is there and holds no {REASONS_FILE}, so it is no baseline; "
             "choose another place"]
        )  # fmt: skip


def _write(target: Path, draft: Draft, entry: str) -> None:
    try:
        with new_folder(target, replace=True) as scratch:
            for name, text in draft.files.items():
                (scratch / name).write_text(text, encoding="utf-8")
            for name, capture in draft.captures.items():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch / name).write_bytes(capture)
            (scratch / REASONS_FILE).write_text(f"{REASONS_HEAD}\n{entry}", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot write the baseline {target}: {error.strerror or error}; what was there is "
            "intact; free space or choose another place with --to"
        ) from error
