"""The command line: its verbs, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence

import click

from testbed.cli_compare import compare
from testbed.cli_crosscheck import crosscheck
from testbed.cli_machine import clean, doctor
from testbed.cli_pages import pages
from testbed.cli_regression import baseline, history
from testbed.cli_run import plan, report, run
from testbed.cli_serve import serve
from testbed.doors import Doors
from testbed.exits import run_command


def main(arguments: Sequence[str], doors: Doors) -> int:
    """Do what ``arguments`` say and return the process's exit code; none rebuild Table 1."""
    return run_command(testbed, args=list(arguments) or ["run"], prog_name="testbed", obj=doors)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def testbed() -> None:
    """Reproducible page loads: real TCP, real browsers, virtual time.

    Without a verb: `run configs/paper-table1.toml`, Table 1 of the TCP Fast Open paper.
    """


for _command in (
    run, plan, report, compare, crosscheck, baseline, history, pages, serve, clean, doctor
):  # fmt: skip
    testbed.add_command(_command)
