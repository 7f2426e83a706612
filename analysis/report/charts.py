"""Bar charts as positions in percent: the template draws them as SVG without a script.

Lengths are shares of the drawing's width, so that text keeps its size on a narrow screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Spread
from analysis.tables.table import Table
from analysis.words import axis_value, axis_word, number

LABEL_PCT = 15.0
TEXT_PCT = 15.0
BAR_PX = 15
GAP_PX = 9
LINE_PX = 19
INLINE_LABEL_CHARS = 7
MAX_ROWS = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its series, its place in percent of the width, its spread, and what it says."""

    series: str
    x: float
    width: float
    low: float | None
    high: float | None
    text: str
    end: float
    y: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A text in the drawing: a page's heading, a row's label or why a bar is missing."""

    kind: str
    text: str
    x: float
    y: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A grid line and the value it stands for."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing ``height`` px high; everything else is positioned inside it."""

    title: str
    unit: str
    series: tuple[tuple[str, str], ...]
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    zero: float
    height: int
    inline: bool


@dataclass(frozen=True, slots=True)
class Row:
    """What one row of a chart shows: values by series, or a note where there is no value."""

    group: str
    label: str
    values: tuple[tuple[str, Spread | None], ...]
    note: str | None


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to percent of the width."""

    low: float
    high: float
    left: float

    def at(self, value: float) -> float:
        """Return the place of ``value`` in percent."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + share * (100.0 - self.left - TEXT_PCT), 3)


def draw_table(table: Table) -> Chart | None:
    """Return the chart of ``table``: improvements of pairs, else load times of cells."""
    other = [name for name in table.axes if name != "page"]
    if table.paired:
        rows = [
            Row(
                axis_value("page", pair.axes.get("page")),
                _label(pair.axes, other),
                (
                    ("ours", pair.improvement_pct),
                    ("paper", _point(pair.paper.improvement_pct if pair.paper else None)),
                ),
                None if pair.improvement_pct else pair.status.replace("_", " "),
            )
            for pair in table.pairs
        ]
        published = any(pair.paper for pair in table.pairs)
        series = (("ours", "this run"), *((("paper", "the paper"),) if published else ()))
        return draw(rows, "Improvement of page load time by TCP Fast Open", "%", series)
    rows = [
        Row(
            axis_value("page", cell.axes.get("page")),
            _label(cell.axes, other),
            (("ours", cell.plt_ms),),
            None if cell.plt_ms else cell.status.replace("_", " "),
        )
        for cell in table.cells
    ]
    return draw(rows, "Page load time", "ms", (("ours", "this run"),))


def draw(
    rows: Sequence[Row], title: str, unit: str, series: tuple[tuple[str, str], ...]
) -> Chart | None:
    """Lay out ``rows``; ``None`` when none has a value or they are too many to be read."""
    numbers = [v for row in rows for _, s in row.values if s for v in (s.low, s.median, s.high)]
    if not numbers or len(rows) > MAX_ROWS:
        return None
    names = dict(series)
    inline = all(len(row.label) <= INLINE_LABEL_CHARS for row in rows)
    step = _step(min(0.0, *numbers), max(0.0, *numbers))
    first = math.floor(min(0.0, *numbers) / step)
    last = max(math.ceil(max(0.0, *numbers) / step), first + 1)
    scale = Scale(first * step, last * step, LABEL_PCT if inline else 0.0)
    bars: list[Bar] = []
    marks: list[Mark] = []
    y, group = LINE_PX, ""
    for row in rows:
        if row.group != group:
            group = row.group
            marks.append(Mark("group", group, 0.0, y + 15))
            y += LINE_PX + 4
        marks.append(Mark("label", row.label, 0.0, y + 12))
        y += 0 if inline else LINE_PX
        for name, value in row.values:
            if name not in names or (value is None and not (name == "ours" and row.note)):
                continue
            if value is None:
                marks.append(Mark("note", row.note or "", scale.at(max(scale.low, 0.0)), y + 12))
            else:
                bars.append(_bar(name, value, scale, y, unit))
            y += BAR_PX
        y += GAP_PX
    ticks = tuple(
        Tick(scale.at(i * step), f"{number(i * step, 0 if step >= 1 else 1)} {unit}")
        for i in range(first, last + 1)
    )
    return Chart(
        title, unit, series, tuple(bars), tuple(marks), ticks, scale.at(0.0), y + LINE_PX, inline
    )


def _bar(series: str, value: Spread, scale: Scale, y: int, unit: str) -> Bar:
    ends = sorted((scale.at(0.0), scale.at(value.median)))
    spread = value.low != value.high
    places = 0 if series == "paper" or unit == "ms" else 1
    return Bar(
        series=series,
        x=ends[0],
        width=round(ends[1] - ends[0], 3),
        low=scale.at(value.low) if spread else None,
        high=scale.at(value.high) if spread else None,
        text=f"{number(value.median, places)} {unit}",
        end=max(scale.at(value.high), scale.at(0.0)),
        y=y,
    )


def _label(axes: dict[str, object], names: Sequence[str]) -> str:
    short = [axis_value(names[0], axes.get(names[0]))] if names else []
    return ", ".join(short + [f"{axis_word(n)} {axis_value(n, axes.get(n))}" for n in names[1:]])


def _point(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value, 1)


def _step(low: float, high: float) -> float:
    span = (high - low) or 1.0
    unit = 10.0 ** math.floor(math.log10(span / 4))
    return next(unit * n for n in (1, 2, 5, 10) if unit * n >= span / 5)
