"""Distributions: of request latencies and of load times, one drawing for each condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.records.cells import Cell
from analysis.report.sampling import spread_over
from analysis.report.sections.panel import PLOT_PX, Kind, Panel, sized
from analysis.report.sections.sweep import (
    PAGE,
    PLT_MS,
    Row,
    panels_of,
    swept,
    title_of,
    values_of,
)
from analysis.tables.table import PAIR_AXIS
from analysis.words import count

if TYPE_CHECKING:
    from analysis.plot import Plot

LEAST = 10
MAX_LINES = 6
MAX_POINTS = 200
"""More steps than pixels only make the page larger."""
LATENCY_MS = "latency_ms"
Values = Callable[[Cell], list[float]]


def plan(rows: Sequence[Row], values: Values, heading: str, what: str) -> tuple[Panel, ...]:
    """One figure for each condition, one line for each arm or for each value of one axis."""
    by = _line_axis(rows)
    names = [n for n in swept(rows) if n != by]
    found = []
    for panel in panels_of(rows, (PAGE, *names)):
        lines = {cell.axes.get(by or ""): values(cell) for row in panel for cell in row.cells}
        enough = {name: sorted(numbers) for name, numbers in lines.items() if len(numbers) >= LEAST}
        if any(numbers[0] < numbers[-1] for numbers in enough.values()):
            title = title_of(panel[0].axes, (PAGE, *names))
            draw = partial(_draw, enough, heading, by)
            found.append(Panel(draw, _caption(enough, what), title))
    return tuple(found)


def thin(numbers: Sequence[float]) -> list[float]:
    """At most ``MAX_POINTS`` of ordered ``numbers``, at even distances, with both ends."""
    return spread_over(numbers, MAX_POINTS)


def _draw(lines: dict[Any, list[float]], heading: str, by: str | None) -> Plot:
    import pandas as pd

    from analysis import plot

    found: list[dict[str, Any]] = [
        {heading: value, **({by: name} if by else {})}
        for name, numbers in lines.items()
        for value in thin(numbers)
    ]
    return sized(plot.cdf(pd.DataFrame(found), heading, by=by), *PLOT_PX)


def _line_axis(rows: Sequence[Row]) -> str | None:
    """Fast Open where there are pairs, else the swept axis with the most values that fit in."""
    if any(row.pair for row in rows):
        return PAIR_AXIS
    names = [n for n in swept(rows) if len(values_of(rows, n)) <= MAX_LINES]
    return max(names, key=lambda n: len(values_of(rows, n)), default=None)


def _caption(lines: dict[Any, list[float]], what: str) -> str:
    sizes = sorted({len(numbers) for numbers in lines.values()})
    if len(sizes) == 1:
        return f"{count(sizes[0], what)} a line." if len(lines) > 1 else f"{count(sizes[0], what)}."
    return f"{sizes[0]:,} to {count(sizes[-1], what)} a line."


def _latencies_ms(cell: Cell) -> list[float]:
    """From the start to the end of each request of the cell's proven loads."""
    return [
        request.end_ms - request.start_ms
        for record in cell.proven
        if record.load is not None
        for request in record.load.requests
    ]


def _load_times_ms(cell: Cell) -> list[float]:
    return list(cell.plt_by_seed.values())


def _title(title: str, rows: Iterable[Row]) -> str:
    return title


LOADS = Kind(
    "load-times",
    partial(_title, "Distribution of page load times"),
    f"Of proven loads, where a cell has {LEAST} of them.",
    partial(plan, values=_load_times_ms, heading=PLT_MS, what="load"),
)
REQUESTS = Kind(
    "latencies",
    partial(_title, "Distribution of request latencies"),
    "From the start of a request to its end, as the client saw it, over all requests of proven "
    f"loads. Of more than {MAX_POINTS} values as many are drawn, at even distances.",
    partial(plan, values=_latencies_ms, heading=LATENCY_MS, what="request"),
)
