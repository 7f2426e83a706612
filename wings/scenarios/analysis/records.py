"""Metric and columns of scenarios, and the verdict of several trials of one."""

from __future__ import annotations

from typing import Any

from analysis.records.cells import Cell
from analysis.records.kind import RecordKind
from analysis.records.metric import Metric
from testbed.model import Record
from wings.scenarios.measurement import ScenarioResult, Verdict

KIND = "scenario"
METRICS = (
    Metric("failed_checks", "number of failed checks", "failed checks", 0.0, places=0,
           labels="numbers of failed checks", better="smaller"),
)  # fmt: skip
"""Calls and packets that are not as promised."""
GRAVITY: tuple[Verdict, ...] = ("broken", "changed", "kept")
"""Verdicts, the gravest first."""


def results_of(cell: Cell) -> list[ScenarioResult]:
    """Return how the proven trials of a scenario came out."""
    results = (record.measured_as(ScenarioResult) for record in cell.proven)
    return [result for result in results if result is not None]


def verdict_of(cell: Cell) -> Verdict | None:
    """Return the gravest verdict of a scenario; ``None`` where none is proven."""
    verdicts = (result.verdict for result in results_of(cell))
    return min(verdicts, key=GRAVITY.index, default=None)


def _values(record: Record) -> dict[str, Any]:
    """Return its verdict, and how many packets were sent, and never arrived (``lost``)."""
    result = record.measured_as(ScenarioResult)
    if result is None:
        return {}
    passages = result.performance.passages
    return {"verdict": result.verdict, "calls": len(result.performance.calls),
            "packets": len(passages),
            "lost": sum(not passage.arrivals for passage in passages)}  # fmt: skip


DESCRIPTION = RecordKind(
    metrics=METRICS,
    holds="verdict",
    knobs=("kind", "scenario"),
    axes=("scenario",),
    columns=("calls", "packets", "lost", "connections", "retransmits"),
    words=("verdict",),
    values=_values,
    unshown=("text",),  # its file
)
