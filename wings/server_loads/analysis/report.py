"""Report of loads on a server: lines of throughput, response times and failures over the sweep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from analysis.records.metric import Metric
from analysis.report.kind import ReportKind
from analysis.report.sections.scales import Quantity, plan_lines
from analysis.report.sections.sweep import FigureKind, SweepRow
from analysis.words import capitalised
from wings.server_loads.analysis.records import METRICS


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


DESCRIPTION = ReportKind(figures=tuple(map(_lines_of, METRICS)))
