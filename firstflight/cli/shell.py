"""Verb ``shell``: the lab of an experiment under Mininet's prompt, for a script or a terminal."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from firstflight.cli.choice import Choice, lab_options
from firstflight.cli.in_lab import plan_command, read_text
from firstflight.cli.services import Services, pass_services
from firstflight.cli.terminal import relay_by_files, relay_by_socket, terminal_of
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from testbed.experiment.plan import plan_trials
from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.model import Record, in_real_time
from testbed.results.progress import Display
from testbed.results.records import read_records
from testbed.runner.launch import open_lanes
from testbed.runner.local import on_this_machine
from testbed.runner.run import run_experiment
from testbed.setup.own import list_own

PROMPT = "/ff/bundle/testbed/kinds/command/prompt.py"
LONGEST_S = 86_400
_log = log.logger(__name__)


@click.command()
@lab_options
@click.option("--script", type=click.Path(path_type=Path), metavar="FILE",
              help="Perform the lines of FILE instead of what is typed.")  # fmt: skip
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="DIR",
              help="The new results folder; default: results/<UTC>-lab-<experiment>.")  # fmt: skip
@pass_services
def shell(services: Services, /, script: Path | None, output: Path | None, **chosen: Any) -> int:
    """Open Mininet's prompt in the lab of one condition of CONFIG: client, near, far, server.

    Lines come from FILE, standard input, or the terminal. In virtual time the clock stands still
    while it waits for a line (docs/shell.md).
    """
    catalogue, choice = services.catalogue(), Choice(**chosen)
    live = not script and sys.stdin.isatty()
    words = f"mnexec /usr/bin/python3 {PROMPT} {{tag}}"
    experiment = plan_command(choice, catalogue, f"{words} typed /ff/out", "shell", at="lab")
    if any(each.link.ip == "6" for each in experiment.conditions_as(LabCommand)):
        raise ConfigurationError(
            ["link.ip = 6: Mininet's prompt names hosts by addresses of IPv4; take dual"]
        )
    relay = relay_by_socket if in_real_time(experiment.kernel) else relay_by_files
    with TemporaryDirectory(prefix="firstflight-shell-") as folder:
        if not live:
            name = gather_files(Path(folder), experiment.command_folder, _read_script(script))
            experiment = plan_command(choice, catalogue, f"{words} script {{folder}}/{name}",
                                      "shell", at="lab", command_folder=folder)  # fmt: skip
        elif relay is relay_by_socket:
            experiment = plan_command(choice, catalogue, f"{words} terminal /ff/out", "shell",
                                      at="lab")  # fmt: skip
        if live:
            experiment = replace(experiment, timeout_s=LONGEST_S)
        with places.using_cache(services.cache()):
            results, (lane,) = open_lanes(
                services.prepare, (experiment,), 1, services.results, output, services.now
            )
            trial = plan_trials(experiment)[0]
            out = results / "trials" / trial.id
            with terminal_of(out, relay) if live else nullcontext():
                tally = run_experiment(
                    results, lane.manifest,
                    on_this_machine(lane.setup, lane.manifest.environment, never_began), Display(),
                )  # fmt: skip
    if tally.interrupted:
        _log.error("interrupted; what there is of it is in %s", results)
        return tally.exit_code
    return _show(results, read_records(results)[-1], tally.exit_code)


def gather_files(folder: Path, own: str | None, script: str) -> str:
    """Put a script, and links to the files in ``own``, into ``folder``; return how it is named.

    Raises:
        ConfigurationError: the user's folder is too large, or holds what cannot be copied.
    """
    files = {} if own is None else list_own(Path(own))
    for name, path in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(path.resolve())
    taken = {name.partition("/")[0] for name in files}
    free = next(
        name for name in map("script{}".format, ("", *range(len(taken)))) if name not in taken
    )
    (folder / free).write_text(script, "utf-8")
    return free


def never_began(record: Record) -> bool:
    """Whether the session did not begin: whoever has typed it all does not want to do so again."""
    return record.measured is None


def _read_script(script: Path | None) -> str:
    if script is None:
        return sys.stdin.read()
    try:
        return script.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"cannot read {script}: {why}"]) from None


def _show(results: Path, record: Record, code: int) -> int:
    """Print the result of a script, and return the exit code of the verb."""
    trial = results / "trials" / record.trial_id
    # Mininet's hosts write to terminals: lines end as on those.
    click.echo(read_text(trial / OUTPUT_FILE), nl=False)
    click.echo(read_text(trial / ERROR_FILE), nl=False, err=True)
    if record.outcome == "timeout":
        shown = re.findall("^lab> (.*)", read_text(trial / OUTPUT_FILE), re.MULTILINE)
        _log.error(
            "timeout: %s: a session has %g s of the lab's time (--set timeout_s=N); in a script "
            "what reads standard input wants `< /dev/null`",
            f"`{shown[-1]}` did not end" if shown else "no line was begun",
            record.trial.timeout_s,
        )
    elif record.reason is not None:
        _log.error("%s: %s", record.outcome, record.reason)
    _log.info("output and capture: %s", trial)
    done = record.measured_as(Executed)
    failed = done is not None and done.exit_status
    return EXIT_OUT_OF_TOLERANCE if code == EXIT_OK and failed else code
