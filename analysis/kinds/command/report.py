"""Report of commands in the lab: their neighbours, beside what every report has."""

from __future__ import annotations

from analysis.records.results import Results
from analysis.report.evidence import TrialLine
from analysis.report.kind import Parts, ReportKind
from analysis.report.neighbours import list_flows
from analysis.tables.table import ResultTable


def _parts(_results: Results, table: ResultTable, _lines: list[TrialLine]) -> Parts:
    return {"neighbours": list_flows(table.cells)}


DESCRIPTION = ReportKind(parts=_parts)
