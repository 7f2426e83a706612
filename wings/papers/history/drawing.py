"""Drawing of a trend: a cell's numbers over the runs of its lane, as a figure without axes.

Runs are at equal distances, whatever the time between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.plot.chart import Plot, field, inline, mark
from analysis.plot.rows import Row
from analysis.plot.svg import Spec
from analysis.plot.theme import BAD, GOOD, PAPER, SERIES, WARN, Colour
from analysis.words import clean, count
from wings.papers.history.trend import Break, Line, Point

WIDTH_PX = 292
HEIGHT_PX = 76
MARGIN_PX = 8
"""Between the outermost points and the edge."""
LEAST_SPAN = 0.02
"""Of the value: a trend that moves by microseconds is drawn flat."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the points of a kind are drawn; ``size`` is in square px."""

    colour: Colour
    shape: str
    size: int
    angle: int = 0


# What is drawn last is on top.
LOOKS = {"plain": Look(SERIES[0], "circle", 28), "same": Look(GOOD, "circle", 28),
         "inconclusive": Look(WARN, "circle", 50), "different": Look(BAD, "diamond", 62),
         "missing": Look(BAD, "cross", 62, 45)}  # fmt: skip


def kind_of(point: Point) -> str:
    """Return the kind of a point: its verdict, ``missing`` without a number, else ``plain``."""
    if point.median_ms is None:
        return "missing"
    return point.verdict if point.verdict in ("same", "different", "inconclusive") else "plain"


def scale_of(line: Line) -> tuple[float, float] | None:
    """Return the least and the greatest number of the scale; ``None`` without a number."""
    numbers = [value for point in line.points if point is not None
               for value in (point.low_ms, point.median_ms, point.high_ms)
               if value is not None]  # fmt: skip
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    least = LEAST_SPAN * max(abs(high), 1e-9)
    if high - low < least:
        middle = (low + high) / 2.0
        return middle - least / 2.0, middle + least / 2.0
    return low, high


def draw_trend(line: Line, changes: Sequence[Break], title: str) -> Plot | None:
    """Return the figure of ``line`` with ``changes`` of the environment; ``None`` without a number.

    A line through the medians, a band from least to greatest where they differ, and a point for
    each run.
    """
    scale = scale_of(line)
    if scale is None:
        return None
    low, high = scale
    points = list(_points(line.points, low))
    last = len(line.points) - 1
    runs = {"domain": [0, last] if last else [-1, 1], "padding": MARGIN_PX}
    across = field("run", "Q", axis={"labels": False, "ticks": False, "grid": False}, scale=runs)
    times = {"domain": [low, high], "padding": MARGIN_PX}
    properties = {**inline(points),
                  "description": f"{title}: {count(len(line.points), 'run')} between "
                  f"{line.metric.write(low)} and {line.metric.write(high)}{line.metric.written_in}",
                  "width": WIDTH_PX, "height": HEIGHT_PX}  # fmt: skip
    at = {"x": across, "y": field("median", "Q", axis=None, scale=times)}
    layers = [*_changes(across, changes), *_lines(at, points), *_marks(at, points)]
    return Plot(tuple(layers), properties)


def _points(points: Sequence[Point | None], foot: float) -> Iterator[Row]:
    """Yield a row for each point; those that a line joins are of one ``piece``."""
    piece = 0
    for place, point in enumerate(points):
        numbered = point is not None and point.median_ms is not None
        piece += not numbered  # a line does not bridge a night without a number
        if point is not None:
            yield {"run": place, "median": point.median_ms if numbered else foot,
                   "low": point.low_ms, "high": point.high_ms, "kind": kind_of(point),
                   "piece": piece if numbered else None, "label": describe_run(point)}  # fmt: skip


def _changes(across: Spec, changes: Sequence[Break]) -> Iterator[Spec]:
    if changes:
        dashed = {"color": WARN.light, "strokeWidth": 1.2, "strokeDash": [3, 3]}
        places = ({"run": change.place - 0.5} for change in changes)
        yield {**inline(places), **mark("rule", {"x": across}, more=dashed)}


def _lines(at: Spec, points: Sequence[Row]) -> Iterator[Spec]:
    drawn = {**at, "color": {"value": SERIES[0].light}, "detail": field("piece", "N")}
    if any(row["low"] != row["high"] for row in points):
        ends = {"y": {**at["y"], "field": "low"}, "y2": {"field": "high"}}
        yield mark("area", drawn | ends, only="datum.piece != null", more={"opacity": 0.18})
    yield mark("line", drawn, only="datum.piece != null", more={"strokeWidth": 1.5})


def _marks(at: Spec, points: Sequence[Row]) -> Iterator[Spec]:
    kinds = {row["kind"] for row in points}
    for kind, look in LOOKS.items():
        if kind in kinds:
            drawn = {**at, "color": {"value": look.colour.light}, "shape": {"value": look.shape},
                     "description": field("label", "N")}  # fmt: skip
            style = {"size": look.size, "stroke": PAPER.light, "strokeWidth": 1}
            turned = {"angle": look.angle} if look.angle else {}
            yield mark("point", drawn, only=f"datum.kind == '{kind}'", more=style | turned)


def describe_day(stamp: str) -> str:
    """Return the day and minute of a run, in UTC."""
    return clean(stamp[:16].replace("T", " "))


def describe_time(point: Point) -> str:
    """Return the number with its range, or how the loads ended without one."""
    if point.median_ms is None:
        ends = (
            f"{number} {outcome.replace('_', ' ')}" for outcome, number in point.outcomes.items()
        )
        return ", ".join(ends)
    spread, write = "", point.metric.write
    if point.low_ms is not None and point.high_ms is not None and point.low_ms != point.high_ms:
        spread = f" ({write(point.low_ms)} to {write(point.high_ms)}, n {point.n})"
    return f"{write(point.median_ms)}{point.metric.written_in}{spread}"


def describe_run(point: Point) -> str:
    """Return the numbers and the verdict of a cell in one run, as one line."""
    verdict = f", {clean(point.verdict)}" if point.verdict else ""
    return (f"{describe_day(point.run.created_utc)}: {describe_time(point)}{verdict}, "
            f"git {clean(point.run.git_revision[:12])}")  # fmt: skip
