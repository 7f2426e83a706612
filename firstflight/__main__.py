"""``python -m firstflight``: the only place that knows both the testbed and the analysis."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.cli import main as run_command_line
from testbed.doors import Analysis, Compared, open_doors
from testbed.model import Experiment, Record

WIDTH = 100
"""Columns of the table where standard output is no terminal."""


def _write_reports(results: Path) -> None:
    from analysis.report import write_reports  # only a command that reports pays for charts

    write_reports(results)


def _render_terminal(results: Path) -> str:
    from analysis.terminal import render_table

    return render_table(results, shutil.get_terminal_size((WIDTH, 24)).columns)


def _list_unsettled(experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
    from analysis.settling import list_unsettled  # only a run that samples until it has settled

    return list_unsettled(experiment, records)


def _cross_check(one: Path, other: Path) -> Compared:
    from analysis import crosscheck_report as report  # only this verb pays for it

    check = report.write_cross_check(one, other)
    return Compared(
        report.render_text(check), report.describe_check(check), report.exit_code_of(check)
    )


def main() -> int:
    """Run the command line with everything joined; return the exit code."""
    analysis = Analysis(_write_reports, _render_terminal, _list_unsettled, _cross_check)
    return run_command_line(sys.argv[1:], open_doors(analysis))


if __name__ == "__main__":
    sys.exit(main())
