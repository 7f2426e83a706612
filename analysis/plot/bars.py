"""Bars and intervals: one row of a figure for each label, what is compared side by side in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.plot import rows as rows_of
from analysis.plot.chart import (
    Plot,
    color_of,
    describe,
    field,
    heading,
    hint,
    inline,
    mark,
    shape_of,
)
from analysis.plot.rows import Data, Row, column_title, decimals, value_text
from analysis.plot.svg import Spec
from analysis.plot.theme import PANEL_WIDTH, SOFT
from analysis.words import number

BAR_PX = 17
GAP_PX = 8
ROW_PX = 22
LANE_PX = 14
LABELS_PX = 120
NUMBER_SHARE = 0.22
SUM_SHARE = 0.35
LEAST_PART = 1e-4
"""Of the longest bar: what is shorter is no pixel."""
TICK = {"size": 12, "thickness": 2, "opacity": 0.7}


def paired(
    data: Data, label: str, value: str, by: str, title: str = "",
    ends: tuple[str, str] | None = None, note: str | None = None,
) -> Plot:  # fmt: skip
    """Draw column ``value`` as horizontal bars from zero, one for each value of ``by``.

    Args:
        data: one row for each bar; rows without ``value`` leave a gap.
        label: names the groups of bars, in order of appearance.
        value: a number; it names the axis and is written at the end of its bar.
        by: one colour for each value of this column, in order of appearance.
        title: above the figure.
        ends: columns with the least and the greatest value, drawn as a thin line where they differ.
        note: a column of texts that stand in place of bars without ``value``.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows = rows_of.read_rows(data, (label, value, by, *(ends or ()), note), "paired")
    bars = _bars(rows, label, value, by, ends)
    rows_of.check_drawable(bars, "paired", (value,))
    labels, lanes = rows_of.texts(rows, label), rows_of.texts(rows, by)
    missing = [
        {"label": value_text(label, r[label]), "color": value_text(by, r[by]), "zero": 0,
         "note": r[note]}
        for r in rows if note and r[value] is None and r[note]
    ]  # fmt: skip
    named = column_title(value)
    placed: Spec = {
        "y": field("label", "N", title=None, sort=labels, scale={"domain": labels}),
        "yOffset": field("color", "N", sort=lanes, scale={"domain": lanes}),
        "tooltip": [
            hint("label", "N", column_title(label)),
            hint("color", "N", column_title(by)),
            hint("value", "Q", named),
        ],
    }
    across = field("value", "Q", title=named, scale=_scale(bars))
    layers = [mark("bar", {**placed, "x": across, "color": color_of("color", by, lanes)})]
    if any(bar["low"] < bar["high"] for bar in bars):
        ranged = {"x": {**across, "field": "low"}, "x2": {"field": "high"}}
        layers.append(mark("rule", placed | ranged, only="datum.low < datum.high"))
    for only, end, style in (
        ("datum.value >= 0", "high", {"align": "left", "dx": 4}),
        ("datum.value < 0", "low", {"align": "right", "dx": -4}),
    ):
        written = {"x": {**across, "field": end}, "text": field("text", "N")}
        layers.append(mark("text", placed | written, only=only, more=style))
    if missing:
        written = {"x": {**across, "field": "zero"}, "text": field("note", "N")}
        style = {"align": "left", "dx": 4, "fontStyle": "italic"}
        layers.append(inline(missing) | mark("text", placed | written, more=style))
    height = len(labels) * (BAR_PX * len(lanes) + GAP_PX)
    return _plot(layers, height, bars, describe(value, label, (by,), len(bars)), title)


def stacked(
    data: Data, label: str, by: str, value: str, part: str, looks: Mapping[str, str]
) -> Plot:  # fmt: skip
    """Draw column ``value`` as parts of horizontal bars, one bar for each value of ``by``.

    Args:
        data: one row for each part, in the order of the parts; what is too small is left out.
        label: names the groups of bars, in order of appearance.
        by: tells the bars of a group apart; written behind a bar, before the sum of its parts.
        value: a positive number; it names the axis.
        part: one colour for each value of this column.
        looks: the colour of each part, as ``#rrggbb``.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows = rows_of.read_rows(data, (label, by, value, part), "stacked")
    sums: dict[tuple[str, str], float] = {}
    parts: list[Row] = []
    for row in rows:
        bar = value_text(label, row[label]), value_text(by, row[by])
        begin = sums.get(bar, 0.0)
        sums[bar] = end = begin + float(row[value] or 0.0)
        parts.append({"label": bar[0], "bar": bar[1], "part": row[part], "begin": begin,
                      "value": end})  # fmt: skip
    longest, places = max(sums.values(), default=0.0), decimals([*sums.values()])
    drawn = [each for each in parts if each["value"] - each["begin"] > longest * LEAST_PART]
    rows_of.check_drawable(drawn, "stacked", (value,))
    labels, lanes = (list(dict.fromkeys(bar[place] for bar in sums)) for place in (0, 1))
    seen = [name for name in looks if any(each["part"] == name for each in drawn)]
    placed: Spec = {
        "y": field("label", "N", title=None, sort=labels, scale={"domain": labels}),
        "yOffset": field("bar", "N", sort=lanes, scale={"domain": lanes}),
    }
    room: Spec = {"domain": [0, longest * (1 + SUM_SHARE)], "nice": False}
    across = field("value", "Q", title=column_title(value), scale=room)
    colours = {"domain": seen, "range": [looks[name] for name in seen]}
    channel = field("part", "N", title=column_title(part), sort=seen, scale=colours)
    written = [{"label": group, "bar": bar, "value": total,
                "text": f"{bar} {number(total, places)}".strip()}
               for (group, bar), total in sums.items()]  # fmt: skip
    layers = [
        mark("bar", {**placed, "x": across, "x2": {"field": "begin"}, "color": channel}),
        inline(written) | mark("text", {**placed, "x": across, "text": field("text", "N")},
                               more={"align": "left", "dx": 4}),
    ]  # fmt: skip
    height = len(labels) * (BAR_PX * len(lanes) + GAP_PX)
    return _plot(layers, height, drawn, describe(value, label, (part,), len(sums)), "")


def intervals(
    data: Data, label: str, value: str, low: str, high: str, color: str | None = None,
    title: str = "", every: str | None = None,
) -> Plot:  # fmt: skip
    """Draw column ``value`` as a point and ``low`` to ``high`` as a line, one row for each label.

    Args:
        data: one row for each interval; rows without ``value`` keep their label and stay empty.
        label: names the rows, in order of appearance.
        value: a number; it names the axis.
        low: lower end in the unit of ``value``; ``None`` or NaN where there is none.
        high: upper end, likewise.
        color: intervals of one label side by side, one colour for each value of this column.
        title: above the figure.
        every: a column of lists, of all values behind the point: each is a thin mark in its lane.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows = rows_of.read_rows(data, (label, value, low, high, color, every), "intervals")
    rows_of.check_drawable(rows_of.numbers(row[value] for row in rows), "intervals", (value,))
    drawn = _intervals(rows, label, value, low, high, color)
    labels, lanes = rows_of.texts(rows, label), rows_of.texts(rows, color)
    named = column_title(value)
    tooltip = [hint("label", "N", column_title(label))]
    if color is not None:
        tooltip.append(hint("color", "N", column_title(color)))
    tooltip += [hint(name, "Q", name.capitalize()) for name in ("value", "low", "high")]
    axis = {"grid": True, "tickBand": "extent"}
    placed: Spec = {
        "y": field("label", "N", title=None, sort=labels, scale={"domain": labels}, axis=axis),
        "color": color_of("color", color, lanes),
        "tooltip": tooltip,
    }
    if len(lanes) > 1:
        placed["yOffset"] = field("color", "N", sort=lanes, scale={"domain": lanes})
    line = {"x": field("low", "Q", title=named), "x2": {"field": "high"}}
    point = field("value", "Q", title=named, scale={"zero": False, "padding": 8})
    shape = shape_of("color", color, lanes)
    layers = [
        mark("rule", placed | line, only="datum.low != null", more={"strokeWidth": 2}),
        mark("point", {**placed, "x": point, "shape": shape}, only="datum.value != null"),
    ]
    strip = [{**place, "value": one} for place, row in zip(drawn, rows, strict=True)
             for one in (row[every] if every else ())]  # fmt: skip
    if strip:
        layers.insert(0, inline(strip) | mark("tick", placed | {"x": point}, more=TICK))
    ends = rows_of.numbers(row[name] for row in drawn for name in ("value", "low", "high"))
    if min(ends) < 0 < max(ends):
        at = {"x": field("zero", "Q", title=named)}
        rule = mark("rule", at, more={"color": SOFT.light, "strokeWidth": 1})
        layers.insert(0, inline([{"zero": 0}]) | rule)
    height = len(labels) * max(ROW_PX, LANE_PX * len(lanes) + 6)
    description = describe(value, label, rows_of.given(color), len(drawn))
    return _plot(layers, height, drawn, description, title)


def _plot(
    layers: list[Spec], height_px: int, rows: list[Row], description: Spec, title: str
) -> Plot:
    size = {"width": PANEL_WIDTH - LABELS_PX, "height": height_px}
    return Plot(tuple(layers), {**inline(rows), **size, **description, **heading(title)})


def _scale(bars: Sequence[Row]) -> Spec:
    """Return a scale from zero to beyond the ends, so that the numbers have room there."""
    ends = [bar[name] for bar in bars for name in ("low", "high")]
    low, high = min(0.0, *ends), max(0.0, *ends)
    room = NUMBER_SHARE * (high - low)
    return {"domain": [low - room * (low < 0), high + room * (high > 0)], "nice": False}


def _bars(
    rows: Sequence[Row], label: str, value: str, by: str, ends: tuple[str, str] | None
) -> list[Row]:
    known = [row for row in rows if row[value] is not None]
    places = decimals(rows_of.numbers(row[value] for row in known))
    low, high = ends or (value, value)
    return [
        {"label": value_text(label, row[label]), "value": row[value],
         "low": row[value] if row[low] is None else row[low],
         "high": row[value] if row[high] is None else row[high], "color": value_text(by, row[by]),
         "text": number(float(row[value]), places)}
        for row in known
    ]  # fmt: skip


def _intervals(
    rows: Sequence[Row], label: str, value: str, low: str, high: str, color: str | None
) -> list[Row]:
    intervals: list[Row] = []
    for row in rows:
        bounded = row[low] is not None and row[high] is not None
        ends = {"low": row[low], "high": row[high]} if bounded else {"low": None, "high": None}
        split = {"color": value_text(color, row[color])} if color is not None else {}
        intervals.append(
            {"label": value_text(label, row[label]), "value": row[value], **ends, **split}
        )
    return intervals
