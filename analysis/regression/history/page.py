"""The trend page: every cell over the runs as a small drawing, in one self-contained HTML file.

Drawings are shapes in a box of fixed units, stretched by the page; runs are at equal distances,
whatever the time between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.regression.history.database import open_history
from analysis.regression.history.trend import Break, Line, Point, TrendLane, read_lanes
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.words import count, name_axes
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole

LAST_RUNS = 100
"""How many runs of a lane the page shows unless another number is asked for."""
LISTED = 20
"""How many of a cell's numbers are listed below its drawing; every dot has its own as a title."""
LOUD = ("missing", "different", "inconclusive")
"""What is shown first, in this order."""
WIDTH = 320.0
HEIGHT = 84.0
MARGIN = 8.0
LEAST_SPAN = 0.02
"""Of the value: a trend that moves by microseconds is drawn flat."""


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


@dataclass(frozen=True, slots=True)
class Card:
    """One cell on the page."""

    title: str
    line: Line
    drawing: Sparkline | None
    kind: str
    listed: tuple[Point, ...]


def write_trend(history: Path, page: Path, last: int = LAST_RUNS) -> str:
    """Write the trends of the ``last`` runs of each lane into ``page``; say what is in it.

    Raises:
        ConfigurationError: the history is empty, or it is none.
        StorageError: it cannot be read, or the page cannot be written.
    """
    with open_history(history) as connection:
        lanes = read_lanes(connection, last)
    if not lanes:
        raise ConfigurationError(
            [f"{history} holds no run yet; add one with ./run.sh history add DIR"]
        )
    write_whole(page, render_page(lanes), "choose another place with -o FILE")
    runs = sum(len(lane.runs) for lane in lanes)
    cells = sum(len(lane.lines) for lane in lanes)
    return f"{page}: {count(runs, 'run')}, {count(cells, 'cell')}, {count(len(lanes), 'lane')}"


def render_page(lanes: tuple[TrendLane, ...]) -> str:
    """Return the page; it loads nothing and runs nothing."""
    style = "\n".join(
        (TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "trend.css")
    )
    return (
        open_templates()
        .get_template("trend.html.jinja")
        .render(
            lanes=[(lane, _cards(lane), _tally(lane)) for lane in lanes],
            width=WIDTH,
            height=HEIGHT,
            style=style,
            kind_of=kind_of,
        )
    )


def draw_line(line: Line, changes: Sequence[Break]) -> Sparkline | None:
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


def _cards(lane: TrendLane) -> list[Card]:
    """The cells of a lane: what needs a look first, the others in their order."""
    cards = [_card(lane, line) for line in lane.lines]
    rank = {kind: place for place, kind in enumerate(LOUD)}
    return sorted(cards, key=lambda card: rank.get(card.kind, len(rank)))


def _card(lane: TrendLane, line: Line) -> Card:
    known = [point for point in line.points if point is not None]
    return Card(
        title=name_axes(line.axes, lane.axes),
        line=line,
        drawing=draw_line(line, lane.changes),
        kind="absent" if line.last is None else kind_of(line.last),
        listed=tuple(reversed(known[-LISTED:])),
    )


def _tally(lane: TrendLane) -> list[tuple[str, int]]:
    """How many cells ended how in the newest run, what needs a look first."""
    kinds = Counter("absent" if line.last is None else kind_of(line.last) for line in lane.lines)
    order = (*LOUD, "same", "plain", "absent")
    return [(kind, kinds[kind]) for kind in order if kinds[kind]]


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
