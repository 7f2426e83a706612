"""Report of loads on a server: lines of throughput, response times and failures over the sweep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from analysis.records.metric import Metric
from analysis.report.kind import ReportKind
from analysis.report.sections.scales import Quantity, plan_lines
from analysis.report.sections.sweep import FigureKind, SweepRow
from analysis.tables.table import ResultTable
from analysis.words import capitalised, count, number
from testbed.model import Record
from wings.server_loads.analysis.records import METRICS
from wings.server_loads.measurement import SETTLED_SHARE, ServedLoad
from wings.server_loads.spec import ServerLoad

LISTED = 6


def _lines_of(metric: Metric) -> FigureKind:
    return FigureKind(
        f"{metric.name.replace('_', '-')}-lines",
        lambda _rows: capitalised(metric.label),
        "Proven loads; a line for each mechanism.",
        partial(
            plan_lines,
            # Without a queue and with one, response times differ by orders of magnitude.
            shown=Quantity(metric.name, partial(_values, metric=metric), log=metric.is_time),
        ),
    )


def _values(row: SweepRow, metric: Metric) -> Iterator[tuple[None, float]]:
    for cell in row.cells:
        for value in cell.by(metric).by_seed.values():
            yield None, value


def _is_settled(record: Record) -> bool:
    served = record.measured_as(ServedLoad)
    return served is None or served.is_settled


def _findings(table: ResultTable) -> list[str]:
    """Say whose mean response has not settled, and what would settle it."""
    records = [record for cell in table.cells for record in cell.proven]
    moving = [cell for cell in table.cells if not all(map(_is_settled, cell.proven))]
    if not moving:
        return []
    named = "; ".join(table.name_row(cell.axes) for cell in moving[:LISTED])
    more = f"; and {len(moving) - LISTED} more" if len(moving) > LISTED else ""
    short = any(
        load.arrivals.cool_down_s < load.arrivals.patience_s
        for load in (record.trial.condition_as(ServerLoad) for record in records)
    )
    remedy = "set cool_down_s to patience_s or more" if short else "set a longer duration_s"
    return [
        f"Not settled: in {count(len(moving), 'row')} the mean response moved by more than "
        f"{number(SETTLED_SHARE * 100, 0)} % between the halves of the measured time, so it "
        f"depends on how long was measured ({named}{more}); {remedy}."
    ]


DESCRIPTION = ReportKind(figures=tuple(map(_lines_of, METRICS)), findings=_findings)
