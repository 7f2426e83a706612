"""Verb ``knobs``: what an experiment may set, with meaning, unit, default and allowed values."""

from __future__ import annotations

import json
import textwrap

import click

from testbed.base.errors import ConfigurationError
from testbed.experiment.knobs import explain, paths
from testbed.experiment.options import find_knob

WIDTH = 88


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def knobs(names: tuple[str, ...], as_json: bool) -> None:
    """List the knobs of experiment files: meaning, unit, default, allowed values.

    NAME is the name of one, such as rtt_ms or link.rtt_ms; without any, all are listed.
    """
    chosen, problems = [], []
    for name in names:
        try:
            chosen.append(find_knob(name)[1])
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    listed = [explain(knob) for knob in chosen or paths().values()]
    if as_json:
        click.echo(json.dumps(listed, indent=2))
        return
    for about in listed:
        default = f", default {about['default']}" if about["default"] else ""
        swept = "" if about["swept"] else "; cannot be swept"
        click.echo(f"{about['knob']}: {about['allowed']}{default}{swept}")
        click.echo(textwrap.indent(textwrap.fill(str(about["meaning"]), WIDTH - 4), "    "))
