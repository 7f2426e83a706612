"""Report of scenarios: the table of promises, and each promise with its ladder and script."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.records.results import Results
from analysis.report.evidence import TrialLine
from analysis.report.kind import Parts, ReportKind
from analysis.tables.table import ResultTable
from analysis.words import count
from testbed.model import Record
from wings.scenarios.analysis.page import BAD, BADGES, make_entries
from wings.scenarios.analysis.promises import make_promises
from wings.scenarios.analysis.records import verdict_of
from wings.scenarios.analysis.terminal import render_promises


def _findings(table: ResultTable) -> list[str]:
    """Say how many promises came to what."""
    verdicts = [verdict_of(cell) for cell in table.cells]
    said = {"kept": "{} kept.",
            "changed": "{} kept no longer: kernels do something else since, which these do, too.",
            "broken": "{} broken."}  # fmt: skip
    return [
        words.format(count(verdicts.count(verdict), "promise is", "promises are"))
        for verdict, words in said.items()
        if verdict in verdicts
    ]


def _parts(results: Results, _table: ResultTable, _lines: list[TrialLine]) -> Parts:
    promised = make_promises([results])
    return {"promised": promised, "entries": make_entries(promised), "badges": BADGES, "bad": BAD,
            "worst_delay_us": _worst_delay_us(results.records)}  # fmt: skip


def _worst_delay_us(records: Iterable[Record]) -> float | None:
    """Return how late a packet was at the most; ``None`` without any."""
    late = (
        (measurement.measured - measurement.theory) * 1000
        for record in records
        if record.lab is not None
        for measurement in record.lab.measurements
    )
    return max(late, default=None)


DESCRIPTION = ReportKind(
    findings=_findings, parts=_parts, trial="scenario", answer="verdict", spreads=False,
    text=lambda results, width: render_promises(make_promises([results]), width),
)  # fmt: skip
