"""The verb ``pages``: which pages there are, what is in them, and whether they are whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from testbed import places
from testbed.doors import Doors
from testbed.errors import EXIT_OK, EXIT_OUT_OF_TOLERANCE
from testbed.page.archive import read_archive
from testbed.page.build import build_page
from testbed.page.catalogue import find_page, list_pages
from testbed.page.verify import verify_archive
from testbed.units import format_bytes

pass_doors = click.make_pass_decorator(Doors)
_names = click.argument("names", nargs=-1, metavar="[NAME]...")


@click.group()
def pages() -> None:
    """The recorded pages that experiments load."""


@pages.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write the pages as JSON.")
@pass_doors
def list_command(doors: Doors, /, as_json: bool) -> int:
    """List every page."""
    found = [_summary(_built(doors, folder)) for folder in list_pages(places.PAGES)]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return EXIT_OK
    width = max((len(page["name"]) for page in found), default=0)
    for page in found:
        click.echo(
            f"{page['name']:{width}}  {page['requests']:4} requests  {page['hosts']:3} hosts  "
            f"{format_bytes(page['transfer_bytes']):>10}  {page['title']}"
        )
    return EXIT_OK


@pages.command()
@click.argument("name")
@pass_doors
def show(doors: Doors, /, name: str) -> int:
    """Show each request of a page, in recorded order."""
    archive = read_archive(_built(doors, find_page(places.PAGES, name)))
    click.echo(f"{archive.name}: {archive.title}\n{archive.root_url}\ndigest {archive.digest}")
    for entry in archive.entries:
        size = entry.headers_size + entry.body_size
        click.echo(f"{entry.depth:2}  {entry.how:8}  {entry.status}  {size:8} B  {entry.url}")
    return EXIT_OK


@pages.command()
@_names
@pass_doors
def build(doors: Doors, /, names: tuple[str, ...]) -> int:
    """Build pages (all by default) and print where each one is."""
    for folder in _folders(names):
        click.echo(_built(doors, folder))
    return EXIT_OK


@pages.command()
@_names
@pass_doors
def verify(doors: Doors, /, names: tuple[str, ...]) -> int:
    """Check built pages (all by default) against what was recorded."""
    wrong = 0
    for folder in _folders(names):
        problems = verify_archive(_built(doors, folder))
        wrong += bool(problems)
        click.echo(f"{folder.name}: {'ok' if not problems else f'{len(problems)} problems'}")
        for problem in problems:
            click.echo(f"  {problem}")
    return EXIT_OUT_OF_TOLERANCE if wrong else EXIT_OK


def _folders(names: tuple[str, ...]) -> tuple[Path, ...]:
    if not names:
        return list_pages(places.PAGES)
    return tuple(find_page(places.PAGES, name) for name in names)


def _built(doors: Doors, folder: Path) -> Path:
    return build_page(folder, doors.cache() / "pages")


def _summary(built: Path) -> dict[str, Any]:
    archive = read_archive(built)
    return {
        "name": archive.name,
        "title": archive.title,
        "url": archive.root_url,
        "requests": len(archive.entries),
        "hosts": len({entry.host for entry in archive.entries}),
        "transfer_bytes": sum(entry.headers_size + entry.body_size for entry in archive.entries),
        "digest": archive.digest,
    }
