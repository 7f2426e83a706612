"""Reports of results, as the verbs have them written and shown; charts cost those who write one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.model import Experiment, Record

if TYPE_CHECKING:
    from analysis.records.results import Results
    from analysis.regression.crosscheck.words import Presented

WIDTH = 100
"""Columns of a table where standard output is no terminal."""


def read_width() -> int:
    """Columns that a table may have."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


class Reports:
    """The analysis of a run."""

    def __init__(self) -> None:
        """Keep what was just written, so that its table is printed without reading it again."""
        self._written: dict[Path, Results] = {}

    def write(self, folder: Path) -> None:
        """Write table, summary and report of results into their folder."""
        from analysis.report.document import write_reports

        self._written[folder] = write_reports(folder)

    def render(self, folder: Path) -> str:
        """The table of results for a terminal, and how they compare with those committed."""
        from analysis.records.results import read_results
        from analysis.regression.committed import hold_against_committed
        from analysis.report.terminal import render_table

        read = self._written.pop(folder, None) or read_results(folder)
        return render_table(folder, read_width(), read) + hold_against_committed(read)

    def cross_check(self, one: Path, other: Path, into: Path) -> Presented:
        """Hold results of two kernels against each other; what was found is written ``into``."""
        from analysis.regression.crosscheck.folders import write_cross_check

        return write_cross_check(one, other, into)

    def list_unsettled(self, experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
        """The cells whose intervals are wider than ``until_ci_pct``."""
        from analysis.report.settling import list_unsettled

        return list_unsettled(experiment, records)
