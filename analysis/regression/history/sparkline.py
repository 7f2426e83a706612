"""One cell's numbers as a small drawing: shapes in a box of fixed units, stretched by the page.

Runs stand at equal distances, whatever the time between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.regression.history.trend import Change, Line, Point

WIDTH = 320.0
HEIGHT = 84.0
MARGIN = 8.0
LEAST_SPAN = 0.02
"""Of the value: microseconds of a trend that stands still are not drawn as mountains."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One run's median, or, without one, a cross at the foot."""

    x: float
    y: float
    kind: str
    point: Point


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Paths in SVG's language, dots, and where the environment changed; the ends of the scale."""

    paths: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[Dot, ...]
    marks: tuple[float, ...]
    low_ms: float
    high_ms: float


def draw_line(line: Line, changes: Sequence[Change]) -> Sparkline | None:
    """Return the drawing of ``line``; ``None`` when it has no number at all."""
    numbers = [
        value
        for point in line.points
        if point is not None
        for value in (point.low_ms, point.median_ms, point.high_ms)
        if value is not None
    ]
    if not numbers:
        return None
    low, high = _scale(numbers)
    places = [_place(i, len(line.points)) for i in range(len(line.points))]

    def height(value: float) -> float:
        share = (value - low) / (high - low)
        return round(HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN), 2)

    pieces = _pieces(line.points)
    return Sparkline(
        paths=tuple(
            "M" + "L".join(f"{places[i]:g} {height(p.median_ms or 0.0):g}" for i, p in piece)
            for piece in pieces
            if len(piece) > 1
        ),
        bands=tuple(
            "M"
            + "L".join(
                [f"{places[i]:g} {height(p.high_ms or 0.0):g}" for i, p in piece]
                + [f"{places[i]:g} {height(p.low_ms or 0.0):g}" for i, p in reversed(piece)]
            )
            + "Z"
            for piece in pieces
            if len(piece) > 1 and any(p.low_ms != p.high_ms for _, p in piece)
        ),
        dots=tuple(
            Dot(
                places[i],
                HEIGHT - MARGIN if point.median_ms is None else height(point.median_ms),
                kind_of(point),
                point,
            )
            for i, point in enumerate(line.points)
            if point is not None
        ),
        marks=tuple(
            round((places[change.place - 1] + places[change.place]) / 2.0, 2) for change in changes
        ),
        low_ms=low,
        high_ms=high,
    )


def kind_of(point: Point) -> str:
    """Return the class of a point: its verdict, ``missing`` without a number, else ``plain``."""
    if point.median_ms is None:
        return "missing"
    return point.verdict if point.verdict in ("same", "different", "inconclusive") else "plain"


def _scale(numbers: Sequence[float]) -> tuple[float, float]:
    low, high = min(numbers), max(numbers)
    least = LEAST_SPAN * max(abs(high), 1e-9)
    if high - low < least:
        middle = (low + high) / 2.0
        return middle - least / 2.0, middle + least / 2.0
    return low, high


def _place(index: int, number: int) -> float:
    share = index / (number - 1) if number > 1 else 0.5
    return round(MARGIN + share * (WIDTH - 2 * MARGIN), 2)


def _pieces(points: Sequence[Point | None]) -> list[list[tuple[int, Point]]]:
    """Runs of neighbours that have numbers: a line does not bridge a night without one."""
    pieces: list[list[tuple[int, Point]]] = [[]]
    for index, point in enumerate(points):
        if point is None or point.median_ms is None:
            pieces.append([])
        else:
            pieces[-1].append((index, point))
    return [piece for piece in pieces if piece]
