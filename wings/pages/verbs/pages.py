"""The verb ``pages``: lists, shows, builds, verifies and exports pages."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from analysis.tables.columns import Column
from analysis.words import MISSING
from firstflight.cli.listing import print_columns
from firstflight.cli.services import Services, pass_services
from testbed.archive.reading import Archive, read_archive
from testbed.base import log, places
from testbed.base.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE, ConfigurationError
from testbed.base.units import format_bytes, format_count
from testbed.model import DEFAULT_ROOT
from testbed.pages.build import build_page
from testbed.pages.catalogue import FACTS_NAME, find_page, list_pages, read_facts, read_kind
from testbed.root.cache import ensure_named
from testbed.root.interpreter import nginx_argv
from testbed.server.nginx import PROGRAMS
from wings.pages.exchange import describe_made_up
from wings.pages.fidelity import read_seen
from wings.pages.har_export import export_har, write_export
from wings.pages.match_rules import describe_rule, suggest_rules
from wings.pages.replaying import Replayed, replay_page
from wings.pages.verbs.filmstrip import filmstrip_command
from wings.pages.verbs.import_page import import_command
from wings.pages.verbs.record import record_command
from wings.pages.verify import count_repeats, verify_archive, verify_table, verify_tls

_log = log.logger(__name__)
_names = click.argument("names", nargs=-1, metavar="[NAME]...")
_SHORTEST_URL = 40
_SHORTEST_TITLE = 24


@click.group()
def pages() -> None:
    """Recorded pages: list, show, record, import, export, build, verify."""


@pages.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write the pages as JSON.")
@pass_services
def list_command(services: Services, /, as_json: bool) -> int:
    """List every page."""
    summaries, problems = [], []
    for folder in list_pages(places.PAGES):
        try:
            summaries.append(_summary(services, folder))
        except ConfigurationError as error:
            problems += error.problems
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
    else:
        print_columns(_columns(summaries))
        if any(page["kind"] == "recipe" for page in summaries):
            click.echo("\n./run.sh pages show NAME builds a recipe and lists its requests.")
    if problems:
        raise ConfigurationError(problems)
    return EXIT_OK


@pages.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Write the page and its requests as JSON.")
@pass_services
def show(services: Services, /, name: str, as_json: bool) -> int:
    """Show each request of a page, in recorded order."""
    folder = find_page(places.PAGES, name)
    archive = read_archive(_built(services, folder))
    if as_json:
        click.echo(json.dumps(_facts(folder, archive) | {"entries": _entries(archive)}, indent=2))
        return EXIT_OK
    facts = [read_kind(folder), _protocols(archive), *(["pinned"] if archive.pinned else [])]
    if (device := archive.device) is not None:
        facts.append(" ".join(f"{key} {value}" for key, value in device.plain().items()))
    click.echo(f"{name}: {_printable(archive.title)}\n{_printable(archive.root_url)}")
    click.echo(f"{', '.join(facts)}\ndigest {archive.digest}")
    if made_up := describe_made_up(archive.entries):
        click.echo(f"made up, never recorded: {made_up}")
    for entry in archive.entries:
        late = "after load  " if entry.after_load else ""
        late += "made up  " if entry.made_up else ""
        method = "" if entry.method == "GET" else f"{entry.method} "
        line = (
            f"{entry.depth:2}  {entry.how:8}  {entry.protocol:8}  {entry.status}  "
            f"{entry.transfer_bytes:8} B  {late}{_printable(method)}"
        )
        click.echo(line + _cut(_printable(entry.url), len(line)))
    return EXIT_OK


@pages.command()
@_names
@pass_services
def build(services: Services, /, names: tuple[str, ...]) -> int:
    """Build pages (all by default) and print where each one is."""
    for folder in _folders(names):
        click.echo(_built(services, folder))
    return EXIT_OK


@pages.command()
@_names
@click.option(
    "--replay",
    is_flag=True,
    help="Load each in a browser on loopback, and compare it with its recording.",
)
@click.option("--json", "as_json", is_flag=True, help="Write what was found as JSON.")
@click.option("--against", metavar="NAME", help="Another recording of the page: suggest rules for "
              "what differs in its requests.")  # fmt: skip
@pass_services
def verify(
    services: Services,
    /,
    names: tuple[str, ...],
    replay: bool,
    as_json: bool,
    against: str | None,
) -> int:
    """Check every file of pages (all by default)."""
    failed_pages, results = 0, []
    for folder in _folders(names):
        problems, remark = _verified(services, folder)
        failed_pages += bool(problems)
        result: dict[str, Any] = {"name": folder.name, "problems": problems}
        replayed = _replayed(services, folder) if replay and not problems else None
        if replayed is not None:
            result["replay"] = asdict(replayed)
        results.append(result)
        if as_json:
            continue
        verdict = format_count(len(problems), "problem") if problems else f"ok{remark}"
        click.echo(f"{folder.name}: {verdict}")
        for line in (*problems, *(replayed.lines() if replayed else ())):
            click.echo(f"  {_printable(line)}")
        if against is not None and not problems:
            both = (read_archive(_built(services, each)) for each in
                    (folder, find_page(places.PAGES, against)))  # fmt: skip
            rules = [describe_rule(rule) for rule in suggest_rules(*both)]
            said = f"for {folder / FACTS_NAME}, if these do not matter:" if rules else "no rule"
            click.echo("\n\n".join((said, *rules)))
    if as_json:
        click.echo(json.dumps(results, indent=2))
    return EXIT_OUT_OF_TOLERANCE if failed_pages else EXIT_OK


@pages.command()
@click.argument("name")
@click.option("--har", "har", is_flag=True, required=True,
              help="As HAR 1.2 with all contents; there is no other format yet.")  # fmt: skip
@click.option("-o", "output", metavar="FILE", help="Where to; default: NAME.har; - is stdout.")
@click.option("--replace", is_flag=True, help="Replace the file if it is there.")
@pass_services
def export(services: Services, /, name: str, har: bool, output: str | None, replace: bool) -> int:
    """Write a page as one file for other tools."""
    text = export_har(_built(services, find_page(places.PAGES, name)))
    if output == "-":
        click.echo(text, nl=False)
        return EXIT_OK
    path = Path(output or f"{name}.har")
    write_export(text, path, replace=replace)
    click.echo(path)
    return EXIT_OK


def _folders(names: tuple[str, ...]) -> tuple[Path, ...]:
    if not names:
        return list_pages(places.PAGES)
    return tuple(find_page(places.PAGES, name) for name in names)


def _built(services: Services, folder: Path) -> Path:
    return build_page(folder, services.cache())


def _verified(services: Services, folder: Path) -> tuple[list[str], str]:
    """Return the page's problems; if there are none, what else there is to say."""
    try:
        kind = read_kind(folder)
        # Before it is built: building a broken one fails with less to say.
        problems = verify_archive(folder) if kind == "archive" else []
        if problems:
            return problems, ""
        built = _built(services, folder)
        problems = verify_table(built) if kind == "table" else verify_archive(built)
        repeats = count_repeats(read_archive(built))
        words = "request repeats an earlier one", "requests repeat earlier ones"
        again = format_count(repeats, *words)
        return [*problems, *verify_tls(built)], f" ({again})" if repeats else ""
    except ConfigurationError as error:
        return error.problems, ""


def _replayed(services: Services, folder: Path) -> Replayed:
    cache = services.cache()
    usr = ensure_named(DEFAULT_ROOT, cache, _log.info).usr
    program = Path(PROGRAMS["nginx"][0])
    nginx = nginx_argv(usr / program.parents[1].relative_to("/usr"))
    return replay_page(_built(services, folder), read_seen(folder), nginx)


def _summary(services: Services, folder: Path) -> dict[str, Any]:
    """Return a page's line of ``list``; of a recipe, which takes long to build, its facts."""
    kind = read_kind(folder)
    if kind == "recipe":
        facts = read_facts(folder / FACTS_NAME)
        return {"name": folder.name, "kind": kind, "title": facts.title, "url": facts.url}
    return _facts(folder, read_archive(folder if kind == "archive" else _built(services, folder)))


def _facts(folder: Path, archive: Archive) -> dict[str, Any]:
    kind = read_kind(folder)
    made_up = [entry for entry in archive.entries if entry.made_up or kind == "table"]
    return {
        "name": folder.name, "kind": kind, "title": archive.title, "url": archive.root_url,
        "protocols": _protocols(archive), "requests": len(archive.entries),
        "hosts": len(archive.hosts),
        "transfer_bytes": sum(entry.transfer_bytes for entry in archive.entries),
        "made_up_bytes": sum(entry.body_size for entry in made_up),
        "digest": archive.digest,
    }  # fmt: skip


def _entries(archive: Archive) -> list[dict[str, Any]]:
    """Return the requests; a body is its hash."""
    own = [{"body": each.body and each.body.name, "transfer_bytes": each.transfer_bytes}
           for each in archive.entries]  # fmt: skip
    return [asdict(entry) | more for entry, more in zip(archive.entries, own, strict=True)]


def _columns(pages: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the table of ``list``; what a recipe holds is unknown until it is built."""

    def known(name: str, form: Callable[[Any], str] = str) -> list[str]:
        return [form(page[name]) if name in page else MISSING for page in pages]

    titles = [_printable(page["title"]) for page in pages]
    return [
        Column("page", [page["name"] for page in pages], left=True),
        Column("kind", [page["kind"] for page in pages], 4, left=True),
        Column("requests", known("requests"), 1),
        Column("hosts", known("hosts"), 2),
        Column("size", known("transfer_bytes", format_bytes)),
        Column("made up", known("made_up_bytes", format_bytes), 4),
        Column("protocols", known("protocols"), 3, left=True),
        Column("title", titles, left=True, least=_SHORTEST_TITLE),
    ]


def _protocols(archive: Archive) -> str:
    """Return ``h1``, ``h1 TLS``, ``h2 TLS`` or ``h1+h2 TLS``: TLS if any host speaks it."""
    spoken = {"h2" if entry.protocol == "h2" else "h1" for entry in archive.entries}
    return "+".join(sorted(spoken)) + (" TLS" if archive.tls_hosts else "")


def _printable(text: str) -> str:
    """Return ``text`` without control characters: a page is text of a stranger."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _cut(url: str, before: int) -> str:
    """Return ``url`` with its middle left out where it does not fit on the terminal's line."""
    if not sys.stdout.isatty():
        return url
    room = max(shutil.get_terminal_size().columns - before, _SHORTEST_URL)
    if len(url) <= room:
        return url
    tail = room // 3
    return f"{url[: room - tail - 1]}\N{HORIZONTAL ELLIPSIS}{url[-tail:]}"


for _command in (filmstrip_command, import_command, record_command):
    pages.add_command(_command)
