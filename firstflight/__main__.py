"""``python -m firstflight``: the only place that knows both the testbed and the analysis."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from testbed.cli import main as run_command_line
from testbed.doors import Analysis, open_doors

WIDTH = 100
"""Columns of the table where standard output is no terminal."""


def _write_reports(results: Path) -> None:
    from analysis.report import write_reports  # only a command that reports pays for charts

    write_reports(results)


def _render_terminal(results: Path) -> str:
    from analysis.terminal import render_table

    return render_table(results, shutil.get_terminal_size((WIDTH, 24)).columns)


def main() -> int:
    """Run the command line with everything joined; return the exit code."""
    return run_command_line(sys.argv[1:], open_doors(Analysis(_write_reports, _render_terminal)))


if __name__ == "__main__":
    sys.exit(main())
