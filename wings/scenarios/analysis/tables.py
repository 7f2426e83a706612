"""Tables of scenarios: what became of each promise, and what is first not as promised."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from analysis.records.cells import Cell
from analysis.tables.kind import Columns, Row, TableKind
from analysis.tables.rows import COUNTS, ENDS, median_of, row_of
from analysis.tables.table import ResultTable
from testbed.model import Record
from wings.scenarios.analysis.records import results_of, verdict_of
from wings.scenarios.measurement import ScenarioResult, Verdict

COLUMNS: Columns = {
    "verdict": "What became of the promise: `kept`, `broken`, or `changed`: what kernels are known "
    "to do today; empty without a proven trial. Of several trials the gravest.",
    "failed_checks": "Calls and packets that are not as promised: the median of the proven trials.",
    "first_difference": "The first sentence of what is not as promised.", **COUNTS, **ENDS,
}  # fmt: skip
"""What each column of a row for one scenario holds, after its name."""


class PromiseSummary(TypedDict):
    """What a scenario came to."""

    verdict: Verdict
    """`kept`; `broken`; or `changed`: as kernels are known to do it today."""
    differences: list[str]
    """A sentence for each call and packet that is not as promised."""
    failed_checks: int
    """How many calls and packets are not as promised, where the promise is not known to have
    changed."""


class _OfCell(TypedDict):
    verdict: NotRequired[Verdict | None]
    """What became of the promise, the gravest of all proven trials; only of scenarios."""


class _OfTrial(TypedDict):
    scenario: NotRequired[Annotated[dict[str, Any], PromiseSummary]]
    """What became of the promise; only of scenarios."""


def _rows(table: ResultTable) -> list[Row]:
    return [row_of(cell, table.axes, _values(cell)) for cell in table.cells]


def _values(cell: Cell) -> Row:
    verdict = verdict_of(cell)
    gravest = next((result for result in results_of(cell) if result.verdict == verdict), None)
    return {
        "verdict": verdict,
        "failed_checks": median_of(cell.spread),
        "first_difference": next(iter(gravest.differences), None) if gravest else None,
    }


def _of_trial(record: Record) -> Row:
    result = record.measured_as(ScenarioResult)
    if result is None:
        return {}
    return {
        "scenario": {"verdict": result.verdict, "differences": list(result.differences),
                     "failed_checks": result.failed_checks}
    }  # fmt: skip


DESCRIPTION = TableKind(trials="scenarios", columns={"Of scenarios: a row for each": COLUMNS},
                        rows=_rows, of_cell=lambda cell: {"verdict": verdict_of(cell)},
                        of_trial=_of_trial, cell_fields=_OfCell, trial_fields=_OfTrial)  # fmt: skip
