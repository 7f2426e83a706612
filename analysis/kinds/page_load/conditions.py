"""Bars, intervals and distributions: what was measured in each condition, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from analysis import plot
from analysis.records.cells import Cell, Spread
from analysis.report.sections.scales import line_axis, map_axes
from analysis.report.sections.sweep import (
    CONDITION,
    PAGE,
    PLOT_PX,
    PLT_MS,
    FigureKind,
    Panel,
    SweepRow,
    panels_of,
    spread_over,
    swept,
    values_of,
)
from analysis.stats.estimates import Interval, band_half_width
from analysis.tables.table import PAIR_AXIS
from analysis.words import count, name_axes
from testbed.model import PageLoad

MAX_BARS, MAX_PAGES = 40, 6
"""Bars in all, or half as many for each of so many pages."""
MAX_INTERVALS = 24
# Labels take room from the plot, so that the figure keeps its width; but the plot stays readable.
PX_A_LETTER = 4
LEAST_PX = 140
LEAST_LOADS, LEAST_REQUESTS = 4, 10
"""A distribution is drawn of so many."""
MARGIN = 0.06
MAX_LINES = 6
MAX_LOOKED_AT = 200
"""Conditions whose distributions may be worth a figure."""
MAX_POINTS = 200
"""More steps than pixels only make the page larger."""
LOW, HIGH, NOTE, SOURCE, EVERY = "low", "high", "note", "source", "every"
GAIN_PCT = "improvement_pct"
LATENCY_MS = "latency_ms"
OURS, PAPER = "this run", "the paper"
Values = Callable[[Cell], list[float]]


def plan_bars(rows: Sequence[SweepRow]) -> tuple[Panel, ...]:
    """Return one figure for each page, unless there are too many bars or another figure."""
    pages = panels_of(rows, (PAGE,))
    few = len(pages) <= MAX_PAGES and max(map(len, pages)) <= MAX_BARS // 2
    if (len(rows) > MAX_BARS and not few) or map_axes(rows) or line_axis(rows):
        return ()
    return tuple(
        Panel(partial(_draw_bars, page, swept(rows)), title=name_axes(page[0].axes, (PAGE,)))
        for page in pages
        if any(_result(row) for row in page)
    )


def plan_intervals(rows: Sequence[SweepRow]) -> tuple[Panel, ...]:
    """Return one figure for each page on which any load time was not the same every time."""
    panels = []
    for page in panels_of(rows, (PAGE,)):
        if any(interval and interval.half_width > 0 for interval in map(_widest, page)):
            shown = spread_over(page, MAX_INTERVALS)
            left_out = (
                f"{len(shown)} of {len(page)} rows, at even distances; the table of statistics has "
                "all."
                if len(shown) < len(page)
                else ""
            )
            title = name_axes(page[0].axes, (PAGE,))
            panels.append(Panel(partial(_draw_intervals, shown), left_out, title))
    return tuple(panels)


def plan_distributions(
    rows: Sequence[SweepRow], values: Values, heading: str, what: str, least: int, banded: bool
) -> tuple[Panel, ...]:
    """Return one figure for each condition, a line for each arm or for each value of one axis.

    Of more than MAX_LOOKED_AT conditions, those at even distances: each load is read for it.
    ``banded``: the values are independent draws, so a band says where their distribution is.
    """
    by = _line_axis(rows)
    names = [n for n in swept(rows) if n != by]
    panels = []
    for panel in spread_over(panels_of(rows, (PAGE, *names)), MAX_LOOKED_AT):
        lines = {cell.axes.get(by or ""): values(cell) for row in panel for cell in row.cells}
        enough = {name: sorted(numbers) for name, numbers in lines.items() if len(numbers) >= least}
        if any(numbers[0] < numbers[-1] for numbers in enough.values()):
            title = name_axes(panel[0].axes, (PAGE, *names))
            draw = partial(_draw_distribution, enough, heading, by, banded)
            panels.append(Panel(draw, _sizes(enough, what), title))
    return tuple(panels)


def _draw_bars(rows: Sequence[SweepRow], names: Sequence[str]) -> plot.Plot:
    heading = GAIN_PCT if rows[0].pair else PLT_MS
    bars: list[dict[str, Any]] = []
    for row in rows:
        label = name_axes(row.axes, names) or name_axes(row.axes, (PAGE,))
        ours, paper = _result(row), row.pair.paper if row.pair else None
        interval = _interval(row)
        status = row.pair.status if row.pair else row.cells[0].status
        bars.append({CONDITION: label, SOURCE: OURS, heading: ours.median if ours else None,
                     LOW: interval.low if interval else None,
                     HIGH: interval.high if interval else None,
                     NOTE: status.replace("_", " ")})  # fmt: skip
        if paper:
            bars.append({CONDITION: label, SOURCE: PAPER, heading: paper.improvement_pct})
    ends = (LOW, HIGH)
    chart = plot.paired(bars, CONDITION, heading, SOURCE, ends=ends, note=NOTE)
    return chart.sized(beside([row[CONDITION] for row in bars]))


def _draw_intervals(rows: Sequence[SweepRow]) -> plot.Plot:
    names = swept(rows)
    labels = [name_axes(row.axes, names) or name_axes(row.axes, (PAGE,)) for row in rows]
    points: list[dict[str, Any]] = []
    for row, label in zip(rows, labels, strict=True):
        for cell in row.cells:
            median = cell.sample.median if cell.sample else None
            interval = median.interval if median else None
            points.append({
                CONDITION: label, PAIR_AXIS: cell.axes.get(PAIR_AXIS),
                PLT_MS: median.value if median else None,
                LOW: interval.low if interval else None,
                HIGH: interval.high if interval else None,
                EVERY: spread_over(sorted(cell.by_seed.values()), MAX_POINTS),
            })  # fmt: skip
    arms = PAIR_AXIS if rows[0].pair else None
    chart = plot.intervals(points, CONDITION, PLT_MS, LOW, HIGH, color=arms, every=EVERY)
    return chart.sized(beside(labels))


def _draw_distribution(
    lines: dict[Any, list[float]], heading: str, by: str | None, banded: bool
) -> plot.Plot:
    points: list[dict[str, Any]] = [
        {heading: value, **({by: name} if by else {})}
        for name, numbers in lines.items()
        for value in spread_over(numbers, MAX_POINTS)
    ]
    if not banded:
        return plot.cdf(points, heading, by=by).sized(*PLOT_PX)
    ends = [numbers[end] for numbers in lines.values() for end in (0, -1)]
    room = MARGIN * (max(ends) - min(ends))
    return plot.cdf(
        points, heading, by=by, x_min=min(ends) - room, x_max=max(ends) + room,
        half_width_pct=lambda n: band_half_width(n) * 100.0,
    ).sized(*PLOT_PX)  # fmt: skip


def beside(labels: Sequence[str]) -> int:
    """Return how wide a plot is beside ``labels``, in px."""
    return max(PLOT_PX[0] - PX_A_LETTER * max(map(len, labels)), LEAST_PX)


def _result(row: SweepRow) -> Spread | None:
    """Return the row's improvement in percent if it is a pair, else its load time in ms."""
    return row.pair.improvement_pct if row.pair else row.cells[0].spread


def _interval(row: SweepRow) -> Interval | None:
    """Return the interval of that."""
    if row.pair:
        return row.pair.shift.percent.interval if row.pair.shift else None
    sample = row.cells[0].sample
    return sample.median.interval if sample else None


def _widest(row: SweepRow) -> Interval | None:
    intervals = [
        cell.sample.median.interval
        for cell in row.cells
        if cell.sample is not None and cell.sample.median.interval is not None
    ]
    return max(intervals, key=lambda interval: interval.half_width, default=None)


def _line_axis(rows: Sequence[SweepRow]) -> str | None:
    """Return Fast Open for pairs, else the swept axis with the most values that fit in."""
    if any(row.pair for row in rows):
        return PAIR_AXIS
    names = [n for n in swept(rows) if len(values_of(rows, n)) <= MAX_LINES]
    return max(names, key=lambda n: len(values_of(rows, n)), default=None)


def _sizes(lines: dict[Any, list[float]], what: str) -> str:
    sizes = sorted({len(numbers) for numbers in lines.values()})
    if len(sizes) == 1:
        return f"{count(sizes[0], what)} a line." if len(lines) > 1 else f"{count(sizes[0], what)}."
    return f"{sizes[0]:,} to {count(sizes[-1], what)} a line."


def _latencies_ms(cell: Cell) -> list[float]:
    """Return the time from start to end of each request of the cell's proven loads."""
    return [
        request.end_ms - request.start_ms
        for record in cell.proven
        if (load := record.measured_as(PageLoad)) is not None
        for request in load.requests
    ]


def _bars_title(rows: Sequence[SweepRow]) -> str:
    gain = "Improvement of page load time by TCP Fast Open"
    return gain if rows[0].pair else "Page load time"


BARS = FigureKind("chart", _bars_title,
                  "Medians of proven loads; the thin line is their interval, where loads differ.",
                  plan_bars, small=True)  # fmt: skip
INTERVALS = FigureKind(
    "intervals",
    lambda rows: "How sure each load time is",
    "Each thin mark is a load, the point the median of a cell, the line its confidence interval; "
    "with fewer than 6 loads it is their range. The numbers are under “How sure the numbers are”.",
    plan_intervals,
)
LOADS = FigureKind(
    "load-times",
    lambda rows: "Distribution of page load times",
    f"The share of proven loads up to each time, where a cell has {LEAST_LOADS} of them. With 95 % "
    "probability the true distribution lies within the band everywhere (Dvoretzky, Kiefer and "
    "Wolfowitz); few loads leave it wide.",
    partial(plan_distributions, values=lambda cell: list(cell.by_seed.values()), heading=PLT_MS,
            what="load", least=LEAST_LOADS, banded=True),
    small=True,
)  # fmt: skip
REQUESTS = FigureKind(
    "latencies",
    lambda rows: "Distribution of request latencies",
    "From the start of a request to its end, as the client saw it, over all requests of proven "
    f"loads. Of more than {MAX_POINTS} values as many are drawn, at even distances.",
    partial(plan_distributions, values=_latencies_ms, heading=LATENCY_MS, what="request",
            least=LEAST_REQUESTS, banded=False),
)  # fmt: skip
