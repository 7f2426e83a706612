"""Intervals: the median load time of each cell with its confidence interval, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.report.sampling import spread_over
from analysis.report.sections.panel import PLOT_PX, Kind, Panel, sized
from analysis.report.sections.sweep import CONDITION, PAGE, PLT_MS, Row, panels_of, swept, title_of
from analysis.stats.estimates import Interval
from analysis.tables.table import PAIR_AXIS

if TYPE_CHECKING:
    from analysis.plot import Plot

MAX_ROWS = 24
# Labels take room from the plot, so that the figure keeps its width; but the plot stays readable.
PX_A_LETTER = 4
LEAST_PX = 140
LOW, HIGH = "low", "high"


def plan(rows: Sequence[Row]) -> tuple[Panel, ...]:
    """One figure for each page on which any load time was not the same every time."""
    found = []
    for page in panels_of(rows, (PAGE,)):
        if any(interval and interval.half_width > 0 for interval in map(_interval, page)):
            shown = spread_over(page, MAX_ROWS)
            title = title_of(page[0].axes, (PAGE,))
            found.append(Panel(partial(_draw, shown), _caption(len(shown), len(page)), title))
    return tuple(found)


def _draw(rows: Sequence[Row]) -> Plot:
    import pandas as pd

    from analysis import plot

    names = swept(rows)
    labels = [title_of(row.axes, names) or title_of(row.axes, (PAGE,)) for row in rows]
    found: list[dict[str, Any]] = []
    for row, label in zip(rows, labels, strict=True):
        for cell in row.cells:
            median = cell.sample.median if cell.sample else None
            interval = median.interval if median else None
            found.append(
                {
                    CONDITION: label,
                    PAIR_AXIS: cell.axes.get(PAIR_AXIS),
                    PLT_MS: median.value if median else None,
                    LOW: interval.low if interval else None,
                    HIGH: interval.high if interval else None,
                }
            )
    chart = plot.intervals(
        pd.DataFrame(found),
        CONDITION,
        PLT_MS,
        LOW,
        HIGH,
        color=PAIR_AXIS if rows[0].pair else None,
    )
    return sized(chart, max(PLOT_PX[0] - PX_A_LETTER * max(map(len, labels)), LEAST_PX))


def _interval(row: Row) -> Interval | None:
    """The widest interval of the row's cells."""
    found = [
        cell.sample.median.interval
        for cell in row.cells
        if cell.sample is not None and cell.sample.median.interval is not None
    ]
    return max(found, key=lambda interval: interval.half_width, default=None)


def _caption(shown: int, rows: int) -> str:
    if shown == rows:
        return ""
    return f"{shown} of {rows} rows, at even distances; the table of statistics has all."


INTERVALS = Kind(
    "intervals",
    lambda rows: "How sure each load time is",
    "The point is the median of a cell, the line its confidence interval, or the range of its "
    "values where there are fewer than 6 loads. The numbers are under “How sure the numbers are”.",
    plan,
)
