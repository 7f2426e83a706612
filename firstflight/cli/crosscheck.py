"""The verb that holds two kernels against each other: ``crosscheck``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstflight.cli.doors import Doors, pass_doors


@click.command()
@click.argument("one", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("other", metavar="OTHER", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write the comparison as JSON.")
@pass_doors
def crosscheck(doors: Doors, /, one: Path, other: Path, as_json: bool) -> int:
    """Compare the results in DIR and OTHER, the same cells on two kernels.

    crosscheck.json and crosscheck.html go into OTHER.
    """
    compared = doors.reports.cross_check(one, other, other)
    text = json.dumps(compared.document, indent=2) if as_json else compared.text
    click.echo(text.rstrip("\n"))
    return compared.exit_code
