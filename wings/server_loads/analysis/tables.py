"""Tables of loads on a server: of each metric the median, the least and the greatest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, NotRequired, TypedDict

from analysis.records.cells import Cell, Spread
from analysis.tables.kind import Columns, Row, TableKind
from analysis.tables.rows import describe_metrics, median_of, row_of
from analysis.tables.summary import spreads_of
from analysis.tables.table import ResultTable
from testbed.model import Record
from wings.server_loads.analysis.records import METRICS
from wings.server_loads.measurement import ServedLoad

_MEDIANS = describe_metrics(METRICS)
COLUMNS: Columns = {
    **{metric.name: _MEDIANS[metric.name] for metric in METRICS},
    **{f"least_{metric.name}": f"Of the {metric.label} the least." for metric in METRICS},
    **{f"greatest_{metric.name}": f"Of the {metric.label} the greatest." for metric in METRICS},
    **_MEDIANS,
}
"""What each column of a row for one load on a server holds, after those of its knobs."""


class _OfCell(TypedDict):
    served: NotRequired[dict[str, Annotated[dict[str, Any], Spread]]]
    """The metrics of the proven loads on a server, by name; only of such trials."""


class _OfTrial(TypedDict):
    served: NotRequired[Annotated[dict[str, Any], ServedLoad]]
    """What became of the connections of a load on a server; only of such trials."""


def _rows(table: ResultTable) -> list[Row]:
    return [row_of(cell, table.axes, _values(cell)) for cell in table.cells]


def _values(cell: Cell) -> dict[str, float | None]:
    spreads = {metric.name: cell.by(metric).spread for metric in METRICS}
    return {
        **{name: median_of(spread) for name, spread in spreads.items()},
        **{f"least_{name}": spread.low if spread else None for name, spread in spreads.items()},
        **{f"greatest_{name}": spread.high if spread else None for name, spread in spreads.items()},
    }


def _of_trial(record: Record) -> Row:
    served = record.measured_as(ServedLoad)
    return {"served": asdict(served)} if served is not None else {}


DESCRIPTION = TableKind(trials="loads on a server",
                        columns={"Of loads on a server: a row for each condition": COLUMNS},
                        rows=_rows, performer="load-generator", on_one_page=True,
                        of_cell=lambda cell: {"served": spreads_of(cell, METRICS)},
                        of_trial=_of_trial, cell_fields=_OfCell, trial_fields=_OfTrial)  # fmt: skip
