"""Description of a kind of trial for its report: its page, figures, sentences and words.

That of the kind NAME is in ``analysis/kinds/NAME/report.py``, and the page, which extends
``report.html.jinja``, in ``analysis/kinds/NAME/report.html.jinja``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysis.records.kind import read_description
from analysis.records.results import Results
from analysis.report.evidence import TrialLine
from analysis.report.sections.sweep import FigureKind
from analysis.tables.table import ResultTable

Parts = dict[str, Any]
"""What a template shows, by name."""


@dataclass(frozen=True, slots=True)
class ReportKind:
    """What a report of a kind shows beside what all reports do.

    Attributes:
        figures: the figures that may be drawn of its table.
        findings: sentences that follow from its table.
        parts: what its page shows of its own.
        text: the table for a terminal in lines of at most so many characters, if it is another.
        trial: what one of its trials is called.
        answer: what a proven trial gives.
        spreads: whether its trials differ by their seeds, so that there is a spread to speak of.
        names_client: whether the clients of its trials are named.
    """

    figures: tuple[FigureKind, ...] = ()
    findings: Callable[[ResultTable], list[str]] = lambda _table: []
    parts: Callable[[Results, ResultTable, list[TrialLine]], Parts] = lambda *_of: {}
    text: Callable[[Results, int], str] | None = None
    trial: str = "load"
    answer: str = "number"
    spreads: bool = True
    names_client: bool = False


def report_of(kind: str) -> ReportKind:
    """Return the description of a kind for its report.

    Raises:
        ConfigurationError: there is no such kind.
    """
    description: ReportKind = read_description(kind, "report")
    return description
