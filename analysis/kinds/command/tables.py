"""Tables of commands in the lab."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, NotRequired, TypedDict

from analysis.kinds.command.records import METRICS
from analysis.records.cells import Cell, further_metrics
from analysis.tables.kind import Row, TableKind
from analysis.tables.rows import describe_metrics
from analysis.tables.summary import spreads_of
from testbed.kinds.command.measurement import Executed
from testbed.model import Record


class _OfTrial(TypedDict):
    executed: NotRequired[Annotated[dict[str, Any], Executed]]
    """What became of the command; only of such trials."""


def _of_cell(cell: Cell) -> Row:
    further = spreads_of(cell, further_metrics([cell]))
    return {"milestones": further} if further else {}


def _of_trial(record: Record) -> Row:
    executed = record.measured_as(Executed)
    return {"executed": asdict(executed)} if executed is not None else {}


DESCRIPTION = TableKind(
    trials="commands",
    columns={"Of commands in the lab: a row for each condition": describe_metrics(METRICS)},
    of_cell=_of_cell, of_trial=_of_trial, trial_fields=_OfTrial,
)  # fmt: skip
