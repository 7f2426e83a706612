"""The verb ``pages import``: a recording of another tool becomes a page of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from testbed.base import places
from testbed.base.errors import EXIT_OK
from testbed.base.units import format_bytes, format_count
from testbed.pages.catalogue import name_page
from wings.pages.importing.notes import printable
from wings.pages.importing.registry import known_formats, read_recording
from wings.pages.importing.writing import WriteOptions, WrittenPage, write_page

_NOTE_LENGTH = 500


class _Import(click.Command):
    """Lists the known formats in its help, and imports no importer for anything else."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"FILE is {known_formats()}. Its content says which.")


@click.command("import", cls=_Import)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="The page's name, which is that of its folder.")
@click.option("--title", help="Its title; default: as recorded.")
@click.option("--url", help="The URL that begins the page; default: the first document's.")
@click.option("--page", metavar="ID", help="The page, if the file has several; default: the first.")
@click.option("--anonymize", is_flag=True, help="Keep numbers and host names only, no contents.")
@click.option("--keep-secrets", is_flag=True, help="Keep cookies, tokens and the like.")
@click.option("--licence", metavar="TEXT", help="Under what terms the contents may be used.")
@click.option("--replace", is_flag=True, help="Replace the page of this name.")
def import_command(
    file: Path, name: str, url: str | None, page: str | None, replace: bool, **options: Any
) -> int:
    """Make a page of what another tool recorded.

    Secrets that can be recognised are removed: in headers and URLs by name, in bodies only by
    form, such as private keys and ghp_ tokens.  Names, messages and passwords in a body stay: look
    at what you share, or use --anonymize.
    """
    folder = name_page(places.PAGES, name, replace=replace)
    recording = read_recording(file, url=url, page=page)
    report_page(folder, write_page(folder, recording, WriteOptions(replace=replace, **options)))
    return EXIT_OK


def report_page(folder: Path, written: WrittenPage) -> None:
    """Print the numbers and notes of ``written``, which is in ``folder``."""
    name = folder.name
    click.echo(
        f"{name}: {format_count(written.requests, 'request')} to "
        f"{format_count(written.hosts, 'host')}, "
        f"{format_bytes(written.size)}, as {written.kind} in {folder}"
    )
    for note in written.notes:
        click.echo(f"  {printable(note, _NOTE_LENGTH)}")
    click.echo(f"Check, look, and open it in a browser:\n  ./run.sh pages verify {name}")
    click.echo(f"  ./run.sh pages show {name}\n  ./run.sh serve {name}")
