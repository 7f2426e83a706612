"""Heat maps: two swept numbers against each other, one drawing for each page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from analysis.report.sampling import spread_over
from analysis.report.sections.panel import PLOT_PX, Kind, Panel, sized
from analysis.report.sections.sweep import (
    CONDITION,
    PAGE,
    PLT_S,
    SAVED,
    Row,
    is_scale,
    panels_of,
    saved_pct,
    swept,
    title_of,
    values_of,
)
from analysis.words import axis_word

if TYPE_CHECKING:
    from analysis.plot import Plot

LEAST_VALUES = 3
MAX_FACETS = 6
LEAST_CELL_PX = 38
Value = Callable[[Row], float | None]


def map_axes(rows: Sequence[Row]) -> tuple[str, str] | None:
    """The two swept numbers with the most values, RTT first if it is one of them; or none."""
    scales = [n for n in swept(rows) if is_scale(rows, n)]
    long = [n for n in scales if len(values_of(rows, n)) >= LEAST_VALUES]
    longest = sorted(long, key=lambda n: (-len(values_of(rows, n)), long.index(n)))[:2]
    if len(longest) < 2:
        return None
    x, y = sorted(longest, key=long.index)
    return (x, y) if x == "rtt_ms" or y != "rtt_ms" else (y, x)


def plan(rows: Sequence[Row], heading: str, value: Value, diverging: bool) -> tuple[Panel, ...]:
    """One map of ``value`` for each page; what else was swept divides it into facets."""
    axes = map_axes(rows)
    if axes is None:
        return ()
    found = []
    for page in panels_of(rows, (PAGE,)):
        facets = panels_of(page, [n for n in swept(rows) if n not in axes])
        shown = [row for facet in spread_over(facets, MAX_FACETS) for row in facet]
        if any(value(row) is not None for row in shown):
            draw = partial(_draw, shown, axes, heading, value, diverging)
            found.append(Panel(draw, _caption(len(facets))))
    return tuple(found)


def _draw(rows: Sequence[Row], axes: tuple[str, str], heading: str, value: Value,
          diverging: bool) -> Plot:  # fmt: skip
    import pandas as pd

    from analysis import plot

    x, y = axes
    rest = [n for n in swept(rows) if n not in axes]
    ordered = sorted(rows, key=lambda r: [values_of(rows, n).index(r.axes.get(n)) for n in axes])
    frame = pd.DataFrame(
        {
            x: [row.axes.get(x) for row in ordered],
            y: [row.axes.get(y) for row in ordered],
            CONDITION: [title_of(row.axes, rest) for row in ordered],
            heading: [value(row) for row in ordered],
        }
    )
    chart = plot.heatmap(
        frame,
        x,
        y,
        heading,
        facet=CONDITION if rest else None,
        title=title_of(rows[0].axes, (PAGE,)),
        diverging=diverging,
    )
    return sized(chart, max(PLOT_PX[0], LEAST_CELL_PX * len(values_of(rows, x))))


def _caption(facets: int) -> str:
    if facets <= MAX_FACETS:
        return ""
    return f"{MAX_FACETS} of {facets} values of what else was swept, at even distances."


def _time_s(row: Row) -> float | None:
    """Median of the load times in s; of a pair, those without Fast Open."""
    plt = row.pair.plt_off if row.pair else row.cells[0].plt_ms
    return plt.median / 1000.0 if plt else None


def _title(what: str, rows: Sequence[Row]) -> str:
    axes = map_axes(rows)
    assert axes is not None  # noqa: S101 - a kind without a plan has no title
    return f"{what} by {axis_word(axes[0])} and {axis_word(axes[1])}"


TIME_MAPS = Kind(
    "time-maps",
    partial(_title, "Page load time"),
    "Medians of proven loads in seconds, without Fast Open where both were measured. "
    "An empty field has no proven load.",
    partial(plan, heading=PLT_S, value=_time_s, diverging=False),
)
SAVED_MAPS = Kind(
    "saved-maps",
    partial(_title, "What Fast Open saves"),
    "Improvement of the page load time in percent of that without Fast Open: medians over the "
    "seeds proven both ways. An empty field has no such seed.",
    partial(plan, heading=SAVED, value=saved_pct, diverging=True),
)
