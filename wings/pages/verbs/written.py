"""Report of a page that was just written: its numbers, every note, and what to do next."""

from __future__ import annotations

from pathlib import Path

import click

from testbed.base.units import format_bytes, format_count
from wings.pages.importing.notes import printable
from wings.pages.importing.writing import Written

_NOTE_LENGTH = 500


def report_page(folder: Path, written: Written) -> None:
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
