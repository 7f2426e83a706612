"""The trend page: every cell over the runs as a small drawing, in one self-contained HTML file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from analysis import plot
from analysis.records.metric import PLT, Metric
from analysis.report.rendering import TEMPLATES, open_templates
from analysis.words import count, name_axes
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole
from wings.papers.history.database import open_history
from wings.papers.history.drawing import (
    describe_day,
    describe_time,
    draw_trend,
    kind_of,
    scale_of,
)
from wings.papers.history.trend import Line, Point, TrendLane, read_lanes

HERE = Path(__file__).parent
LAST_RUNS = 100
"""How many runs of a lane the page shows unless another number is asked for."""
LISTED = 20
"""How many of a cell's numbers are listed below its drawing; every dot has its own as a title."""
LOUD = ("missing", "different", "inconclusive")
"""What is shown first, in this order."""


@dataclass(frozen=True, slots=True)
class Card:
    """One cell on the page; without a number it has neither ``drawing`` (SVG) nor ``scale``."""

    title: str
    line: Line
    drawing: str | None
    scale: tuple[float, float] | None
    kind: str
    listed: tuple[Point, ...]


def write_trend(history: Path, page: Path, last: int = LAST_RUNS, metric: Metric = PLT) -> str:
    """Write the trends of the ``last`` runs of each lane into ``page``; say what is in it.

    Raises:
        ConfigurationError: the history is empty, or it is none, or no run has the metric.
        StorageError: it cannot be read, or the page cannot be written.
    """
    with open_history(history) as connection:
        lanes = read_lanes(connection, last, metric)
        if not lanes and read_lanes(connection, 1):
            raise ConfigurationError(
                [f"no run in {history} has a {metric.label} ({metric.name}): only browsers give "
                 "it; a run that was added by an older testbed gets it when it is added again"]
            )  # fmt: skip
    if not lanes:
        raise ConfigurationError(
            [f"{history} holds no run yet; add one with ./run.sh history add DIR"]
        )
    write_whole(page, render_page(lanes, metric), "choose another place with -o FILE")
    runs = sum(len(lane.runs) for lane in lanes)
    cells = sum(len(lane.lines) for lane in lanes)
    return f"{page}: {count(runs, 'run')}, {count(cells, 'cell')}, {count(len(lanes), 'lane')}"


def render_page(lanes: tuple[TrendLane, ...], metric: Metric = PLT) -> str:
    """Return the page; it loads nothing and runs nothing."""
    sheets = [file.read_text("utf-8") for file in (TEMPLATES / "report.css", HERE / "trend.css")]
    return (
        open_templates(HERE)
        .get_template("trend.html.jinja")
        .render(
            lanes=[(lane, _cards(lane), _tally(lane)) for lane in lanes],
            metric=metric,
            style="\n".join([plot.style_sheet(), *sheets]),
            day=describe_day,
            time=describe_time,
        )
    )


def _cards(lane: TrendLane) -> list[Card]:
    """The cells of a lane: what needs a look first, the others in their order."""
    cards = [_card(lane, line) for line in lane.lines]
    rank = {kind: place for place, kind in enumerate(LOUD)}
    return sorted(cards, key=lambda card: rank.get(card.kind, len(rank)))


def _card(lane: TrendLane, line: Line) -> Card:
    known = [point for point in line.points if point is not None]
    title = name_axes(line.axes, lane.axes)
    figure = draw_trend(line, lane.changes, title)
    return Card(title=title, line=line, drawing=None if figure is None else plot.to_svg(figure),
                scale=scale_of(line), kind="absent" if line.last is None else kind_of(line.last),
                listed=tuple(reversed(known[-LISTED:])))  # fmt: skip


def _tally(lane: TrendLane) -> list[tuple[str, int]]:
    """How many cells ended how in the newest run, what needs a look first."""
    kinds = Counter("absent" if line.last is None else kind_of(line.last) for line in lane.lines)
    order = (*LOUD, "same", "plain", "absent")
    return [(kind, kinds[kind]) for kind in order if kinds[kind]]
