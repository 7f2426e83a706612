"""Testbed and analysis joined: the only place that knows both."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.load import Results
from firstflight.cli.main import main as run_command_line
from firstflight.regression import open_regression
from testbed.doors import Analysis, Compared, Comparing, open_doors
from testbed.model import Experiment, Record

WIDTH = 100
"""Columns of the table where standard output is no terminal."""


_reported: dict[Path, Results] = {}
"""What a report was just made of, by folder: its table is printed without reading it again."""


def _write_reports(results: Path) -> None:
    from analysis.report import write_reports  # only a command that reports pays for charts

    _reported[results] = write_reports(results)


def _render_terminal(results: Path) -> str:
    from analysis.committed import hold_against_committed
    from analysis.load import read_results
    from analysis.terminal import render_table

    width = shutil.get_terminal_size((WIDTH, 24)).columns
    read = _reported.pop(results, None) or read_results(results)
    return render_table(results, width, read) + hold_against_committed(read)


def _list_unsettled(experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
    from analysis.settling import list_unsettled  # only a run that samples until it has settled

    return list_unsettled(experiment, records)


def _cross_check(one: Path, other: Path, into: Path) -> Compared:
    from analysis.crosscheck.folders import (
        write_cross_check,  # only two kernels side by side pay for it
    )

    presented = write_cross_check(one, other, into)
    return Compared(presented.text, presented.document, presented.exit_code)


def _compare(base: Path, new: Path, asked: Comparing) -> Compared:
    from analysis import compare  # only this verb pays for it

    options = compare.CompareOptions(
        asked.across, asked.alpha, asked.min_effect_pct, asked.allow_faster
    )
    found = compare.compare_results(base, new, options)
    compare.write_files(found, asked.junit, asked.markdown)
    text = compare.render_text(found, shutil.get_terminal_size((WIDTH, 24)).columns)
    return Compared(text, compare.describe_comparison(found), found.exit_code)


def open_analysis() -> Analysis:
    """The real one."""
    return Analysis(
        _write_reports,
        _render_terminal,
        _list_unsettled,
        _cross_check,
        regression=open_regression(),
        compare=_compare,
    )


def main() -> int:
    """Run the command line with everything joined; return the exit code."""
    code = run_command_line(sys.argv[1:], open_doors(open_analysis()))
    gc.freeze()  # the process ends: nobody needs to look for cycles in what it leaves
    return code
