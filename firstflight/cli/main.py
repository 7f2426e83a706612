"""The command line: its verbs, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence

import click

from firstflight.cli.compare import compare
from firstflight.cli.crosscheck import crosscheck
from firstflight.cli.exits import run_command
from firstflight.cli.knobs import knobs
from firstflight.cli.machine import clean, doctor
from firstflight.cli.pages import pages
from firstflight.cli.regression import baseline, history
from firstflight.cli.run import plan, report, run
from firstflight.cli.serve import serve
from testbed.base import places
from testbed.doors import Doors

NEEDS = {
    "baseline list": "python",
    "baseline show": "python",
    "baseline update": "python",
    "clean": "python",
    "compare": "python",
    "crosscheck": "python",
    "doctor": "kernel",
    "history add": "python",
    "history list": "python",
    "history page": "python",
    "knobs": "python",
    "pages build": "programs",
    "pages export": "programs",
    "pages import": "python",
    "pages list": "python",
    "pages record": "programs",
    "pages show": "programs",
    "pages verify": "programs",
    "plan": "python",
    "report": "python",
    "run": "kernel",
    "serve": "programs",
}
"""What each verb needs of the machine, as ``bootstrap/main.sh`` knows it; ``run.sh`` reads it from
``docs/command-line.md``.  A page of any kind may be a recipe, which a browser builds.
"""


def main(arguments: Sequence[str], doors: Doors) -> int:
    """Do what ``arguments`` say and return the process's exit code; none rebuild Table 1."""
    return run_command(testbed, args=list(arguments) or ["run"], prog_name="./run.sh", obj=doors)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(places.describe_version(), message="%(version)s")
def testbed() -> None:
    """Reproducible page loads: real TCP, real browsers, virtual time.

    Without a verb: `run configs/paper-table1.toml`, Table 1 of the TCP Fast Open paper.
    """


for _command in (
    run, plan, report, compare, crosscheck, baseline, history, pages, knobs, serve, clean, doctor
):  # fmt: skip
    testbed.add_command(_command)
