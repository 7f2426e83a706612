"""Lines: load times and savings over one swept number with enough values, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.report.sections.maps import map_axes
from analysis.report.sections.panel import PLOT_PX, Kind, Panel, sized
from analysis.report.sections.sweep import (
    CONDITION,
    PAGE,
    PLT_MS,
    SAVED,
    Row,
    is_scale,
    panels_of,
    saved_pct,
    swept,
    title_of,
    values_of,
)
from analysis.tables.table import PAIR_AXIS
from analysis.words import axis_word

if TYPE_CHECKING:
    from analysis.plot import Plot

LEAST_VALUES = 5
MAX_LINES = 8


@dataclass(frozen=True, slots=True)
class Points:
    """One row's points: each of its arm, if there are arms, and a value under ``heading``."""

    heading: str
    of: Callable[[Row], Iterator[tuple[bool | None, float]]]


def line_axis(rows: Sequence[Row]) -> str | None:
    """The swept number with the most values, if they are enough and no map shows them better."""
    if map_axes(rows) is not None:
        return None
    names = [n for n in swept(rows) if is_scale(rows, n) and None not in values_of(rows, n)]
    longest = max(names, key=lambda n: len(values_of(rows, n)), default=None)
    return longest if longest and len(values_of(rows, longest)) >= LEAST_VALUES else None


def plan(rows: Sequence[Row], points: Points) -> tuple[Panel, ...]:
    """One figure for each page; for each value of further axes too, where lines get too many."""
    axis = line_axis(rows)
    if axis is None:
        return ()
    rest = [n for n in swept(rows) if n != axis]
    apart: list[str] = []
    while len(panels_of(rows, [n for n in rest if n not in apart])) > MAX_LINES:
        # The fewer values an axis has, the fewer figures it makes.
        left = [n for n in rest if n not in apart]
        apart.append(min(left, key=lambda n: len(values_of(rows, n))))
    lines = [n for n in rest if n not in apart]
    return tuple(
        Panel(
            partial(_draw, panel, axis, lines, points),
            title=title_of(panel[0].axes, (PAGE, *apart)),
        )
        for panel in panels_of(rows, (PAGE, *apart))
        if any(True for row in panel for _ in points.of(row))
    )


def _draw(rows: Sequence[Row], axis: str, lines: Sequence[str], points: Points) -> Plot:
    import pandas as pd

    from analysis import plot

    found: list[dict[str, Any]] = [
        {
            **row.axes,
            CONDITION: title_of(row.axes, lines),
            PAIR_AXIS: arm,
            points.heading: value,
        }
        for row in rows
        for arm, value in points.of(row)
    ]
    arms = PAIR_AXIS if found[0][PAIR_AXIS] is not None else None
    color = lines[0] if len(lines) == 1 else CONDITION if lines else arms
    chart = plot.lines(
        pd.DataFrame(found),
        axis,
        points.heading,
        color=color,
        dash=arms if lines else None,
    )
    return sized(chart, *PLOT_PX)


def _times(row: Row) -> Iterator[tuple[bool | None, float]]:
    for cell in row.cells:
        for plt_ms in cell.plt_by_seed.values():
            yield (bool(cell.axes[PAIR_AXIS]) if row.pair else None), plt_ms


def _savings(row: Row) -> Iterator[tuple[bool | None, float]]:
    saved = saved_pct(row)
    if saved is not None:
        yield None, saved


def _title(what: str, rows: Sequence[Row]) -> str:
    axis = line_axis(rows)
    assert axis is not None  # noqa: S101 - a kind without a plan has no title
    return f"{what} over {axis_word(axis)}"


TIME_LINES = Kind(
    "time-lines",
    partial(_title, "Page load time"),
    "Medians of proven loads, and their range where they differ.",
    partial(plan, points=Points(PLT_MS, _times)),
)
SAVED_LINES = Kind(
    "saved-lines",
    partial(_title, "What Fast Open saves"),
    "Improvement of the page load time in percent of that without Fast Open: medians over the "
    "seeds proven both ways.",
    partial(plan, points=Points(SAVED, _savings)),
)
