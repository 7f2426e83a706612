"""Maps and lines: values over swept numbers, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from analysis import plot
from analysis.report.sections.sweep import (
    CONDITION,
    PAGE,
    PLOT_PX,
    Panel,
    SweepRow,
    is_scale,
    panels_of,
    spread_over,
    swept,
    values_of,
)
from analysis.tables.table import PAIR_AXIS
from analysis.words import name_axes

LEAST_FOR_MAP = 3
LEAST_FOR_LINE = 5
MAX_LINES = 6
LOG_RATIO = 20.0
"""Lines whose values are further apart than this share a logarithmic axis."""
MAX_FACETS = 6
LEAST_CELL_PX = 38


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a figure shows of each row: values under ``heading``, each of its arm if it has one.

    ``log``: their axis is logarithmic, if there is one.  ``diverging``: they are above and below
    zero.
    """

    heading: str
    of: Callable[[SweepRow], Iterator[tuple[bool | None, float]]]
    log: bool = False
    diverging: bool = False


def map_axes(rows: Sequence[SweepRow]) -> tuple[str, str] | None:
    """Return the two swept numbers with the most values, RTT first if it is one; or none."""
    scales = [n for n in swept(rows) if is_scale(rows, n)]
    long = [n for n in scales if len(values_of(rows, n)) >= LEAST_FOR_MAP]
    longest = sorted(long, key=lambda n: (-len(values_of(rows, n)), long.index(n)))[:2]
    if len(longest) < 2:
        return None
    x, y = sorted(longest, key=long.index)
    return (x, y) if x == "rtt_ms" or y != "rtt_ms" else (y, x)


def line_axis(rows: Sequence[SweepRow]) -> str | None:
    """Return the swept number with the most values, if they are enough and there is no map."""
    if map_axes(rows) is not None:
        return None
    names = [n for n in swept(rows) if is_scale(rows, n) and None not in values_of(rows, n)]
    longest = max(names, key=lambda n: len(values_of(rows, n)), default=None)
    return longest if longest and len(values_of(rows, longest)) >= LEAST_FOR_LINE else None


def plan_maps(rows: Sequence[SweepRow], shown: Quantity) -> tuple[Panel, ...]:
    """Return one map for each page; what else was swept divides it into facets."""
    axes = map_axes(rows)
    if axes is None:
        return ()
    panels = []
    for page in panels_of(rows, (PAGE,)):
        facets = panels_of(page, [n for n in swept(rows) if n not in axes])
        chosen = [row for facet in spread_over(facets, MAX_FACETS) for row in facet]
        if any(True for row in chosen for _ in shown.of(row)):
            left_out = (
                f"{MAX_FACETS} of {len(facets)} values of what else was swept, at even distances."
                if len(facets) > MAX_FACETS
                else ""
            )
            panels.append(Panel(partial(_draw_map, chosen, axes, shown), left_out))
    return tuple(panels)


def plan_lines(rows: Sequence[SweepRow], shown: Quantity) -> tuple[Panel, ...]:
    """Return one figure for each page; further axes divide it where lines get too many."""
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
            partial(_draw_lines, panel, axis, lines, shown),
            title=name_axes(panel[0].axes, [n for n in (PAGE, *apart) if n in panel[0].axes]),
        )
        for panel in panels_of(rows, (PAGE, *apart))
        if any(True for row in panel for _ in shown.of(row))
    )


def _draw_map(rows: Sequence[SweepRow], axes: tuple[str, str], shown: Quantity) -> plot.Plot:
    x, y = axes
    rest = [n for n in swept(rows) if n not in axes]
    ordered = sorted(rows, key=lambda r: [values_of(rows, n).index(r.axes.get(n)) for n in axes])
    fields: list[dict[str, Any]] = [
        {x: row.axes.get(x), y: row.axes.get(y), CONDITION: name_axes(row.axes, rest),
         shown.heading: next((value for _, value in shown.of(row)), None)}
        for row in ordered
    ]  # fmt: skip
    chart = plot.heatmap(fields, x, y, shown.heading, facet=CONDITION if rest else None,
                         title=name_axes(rows[0].axes, (PAGE,)),
                         diverging=shown.diverging)  # fmt: skip
    return chart.sized(max(PLOT_PX[0], LEAST_CELL_PX * len(values_of(rows, x))))


def _draw_lines(
    rows: Sequence[SweepRow], axis: str, lines: Sequence[str], shown: Quantity
) -> plot.Plot:
    points: list[dict[str, Any]] = [
        {**row.axes, CONDITION: name_axes(row.axes, lines), PAIR_AXIS: arm, shown.heading: value}
        for row in rows
        for arm, value in shown.of(row)
    ]
    arms = PAIR_AXIS if points[0][PAIR_AXIS] is not None else None
    color = lines[0] if len(lines) == 1 else CONDITION if lines else arms
    dash = arms if lines else None
    values = [point[shown.heading] for point in points]
    log = shown.log or (min(values) > 0 and max(values) > LOG_RATIO * min(values))
    chart = plot.lines(points, axis, shown.heading, color=color, dash=dash, log=log)
    return chart.sized(*PLOT_PX)
