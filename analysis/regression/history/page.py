"""The trend page: one self-contained HTML file from the history."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from analysis.regression.history.database import open_history
from analysis.regression.history.sparkline import HEIGHT, WIDTH, Sparkline, draw_line, kind_of
from analysis.regression.history.trend import Lane, Line, Point, read_lanes
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.words import axis_value, axis_word, count
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole

LAST_RUNS = 100
"""How many runs of a lane the page shows unless it is told."""
LISTED = 20
"""How many of a cell's numbers stand below its drawing; every dot says its own."""
LOUD = ("missing", "different", "inconclusive")
"""What is shown first, in this order."""


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


def render_page(lanes: tuple[Lane, ...]) -> str:
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


def _cards(lane: Lane) -> list[Card]:
    """The cells of a lane: what needs a look first, the others in their order."""
    cards = [_card(lane, line) for line in lane.lines]
    rank = {kind: place for place, kind in enumerate(LOUD)}
    return sorted(cards, key=lambda card: rank.get(card.kind, len(rank)))


def _card(lane: Lane, line: Line) -> Card:
    known = [point for point in line.points if point is not None]
    return Card(
        title=", ".join(_words(name, line) for name in lane.axes),
        line=line,
        drawing=draw_line(line, lane.changes),
        kind="absent" if line.last is None else kind_of(line.last),
        listed=tuple(reversed(known[-LISTED:])),
    )


def _words(name: str, line: Line) -> str:
    value = axis_value(name, line.axes.get(name))
    return value if name == "page" else f"{axis_word(name)} {value}"


def _tally(lane: Lane) -> list[tuple[str, int]]:
    """How many cells ended how in the newest run, what needs a look first."""
    kinds = Counter("absent" if line.last is None else kind_of(line.last) for line in lane.lines)
    order = (*LOUD, "same", "plain", "absent")
    return [(kind, kinds[kind]) for kind in order if kinds[kind]]
