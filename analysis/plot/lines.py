"""Lines: a measured quantity over a swept one, with what a model predicts beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.plot import rows as rows_of
from analysis.plot.chart import (
    MEASURED,
    Plot,
    color_of,
    describe,
    field,
    heading,
    hint,
    inline,
    mark,
    pattern_of,
    shape_of,
)
from analysis.plot.rows import Data, Row, column_title, panel_text, value_text
from analysis.plot.svg import Spec
from analysis.plot.theme import INK
from testbed.base.errors import ConfigurationError

MODEL = "model"
# With more, the axis chooses its own ticks.
MOST_TICKS = 8
EDGE_PX = 10
LOG = {"type": "log", "nice": True}


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one figure; those that it does not have are ``None``."""

    x: str
    y: str
    color: str | None
    dash: str | None
    facet: str | None

    @property
    def parts(self) -> dict[str, str]:
        """The columns that split the values, by the field that they become."""
        split = {"color": self.color, "dash": self.dash, "facet": self.facet}
        return {field: name for field, name in split.items() if name is not None}


def lines(
    data: Data, x: str, y: str, color: str | None = None, dash: str | None = None,
    facet: str | None = None, title: str = "", model: Data | None = None, log: bool = False,
) -> Plot:  # fmt: skip
    """Draw column ``y`` over column ``x``: the median of equal points, and their range if any.

    Args:
        data: one row for each value; rows without ``x`` or ``y`` are left out.
        x: a number, drawn to scale, or a name, drawn in order of appearance.
        y: a number; the axis starts at zero.
        color: one colour and one point shape for each value of this column.
        dash: one line pattern for each value of this column.
        facet: one panel for each value of this column, two abreast, with the same axes.
        title: above the figure.
        model: rows with the same columns (those of ``color``, ``dash`` and ``facet`` may be
            left out), drawn as dashed lines without points.
        log: the axis of ``y`` is logarithmic, from one power of ten to another.

    Raises:
        ConfigurationError: a column is not there, there is nothing to draw, or ``log`` is asked of
            a value that is not positive.
    """
    columns = Columns(x, y, color, dash, facet)
    rows = rows_of.read_rows(data, (x, y, *columns.parts.values()), "lines")
    points = _points(rows, columns, MEASURED, {})
    rows_of.check_drawable(points, "lines", (x, y))
    if model is not None:
        points += _model_points(rows, model, columns)
    if log and (least := min(row["low"] for row in points)) <= 0:
        raise ConfigurationError([f"lines: {y} is {least:g}, which a logarithmic axis cannot show"])
    properties = {**inline(points),
                  **describe(y, x, rows_of.given(color, dash, facet), len(points)),
                  **heading(title)}  # fmt: skip
    layers = tuple(_layers(rows, columns, points, drawn_model=model is not None, log=log))
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    return Plot(layers, properties, panels, zoomable=_is_scale(rows, x))


def _layers(
    rows: Sequence[Row], columns: Columns, points: Sequence[Row], drawn_model: bool, log: bool
) -> list[Spec]:
    named = column_title(columns.y)
    colors, dashes = rows_of.texts(rows, columns.color), rows_of.texts(rows, columns.dash)
    tooltip = _tooltip(rows, columns)
    drawn: Spec = {
        "x": _across(rows, columns.x),
        "y": field("y", "Q", title=named, scale=LOG if log else {"zero": True, "nice": 5}),
        "color": color_of("color", columns.color, colors),
    }
    pattern = pattern_of("pattern", columns.dash, dashes, MODEL if drawn_model else None)
    # Lines of one pattern may be several: each value of the dash column is a line of its own.
    lined: Spec = {**drawn, "strokeDash": pattern, "detail": field("dash", "N")}
    measured = f"datum.kind == '{MEASURED}'"
    shape = shape_of("color", columns.color, colors)
    layers = [
        mark("line", lined, only=measured),
        mark("point", {**drawn, "shape": shape, "tooltip": tooltip}, only=measured),
    ]
    if any(row["high"] > row["low"] for row in points):
        ends = {"y": field("low", "Q", title=named), "y2": {"field": "high"}}
        ranged = f"{measured} && datum.high > datum.low"
        layers.append(mark("rule", drawn | ends, only=ranged, more={"strokeWidth": 1.5}))
    if drawn_model:
        # Over the measured lines, and thin: where they agree, both are seen.
        if not any("color" in row for row in points if row["kind"] == MODEL):
            lined["color"] = {"value": INK.light}
        predicted = f"datum.kind == '{MODEL}'"
        thin = {"strokeWidth": 1.3}
        layers.append(mark("line", {**lined, "tooltip": tooltip}, only=predicted, more=thin))
    return layers


def _points(
    rows: Sequence[Row], columns: Columns, kind: str, fixed: Mapping[str, str]
) -> list[Row]:
    """Return the median and range of the values at each point of each line."""
    parts = columns.parts
    names = rows_of.given(columns.x, *parts.values())
    placed = [row for row in rows if row[columns.x] is not None]
    points: list[Row] = []
    for key, part in rows_of.groups(placed, names).items():
        known = dict(zip(names, key, strict=True))
        values = rows_of.numbers(row[columns.y] for row in part)
        if not values:
            continue
        words = {split: _text(split, name, known[name]) for split, name in parts.items()}
        points.append({
            "kind": kind, "x": _place(known[columns.x], columns.x), "y": statistics.median(values),
            "low": min(values), "high": max(values), "n": len(values), **fixed, **words,
            "pattern": words.get("dash", MEASURED) if kind == MEASURED else kind,
        })  # fmt: skip
    return points


def _model_points(rows: Sequence[Row], model: Data, columns: Columns) -> list[Row]:
    """Return the model's points; a model without the facet's column is drawn in every panel."""
    known = rows_of.columns_of(model)
    color, dash, facet = (
        name if name in known else None for name in (columns.color, columns.dash, columns.facet)
    )
    model_columns = Columns(columns.x, columns.y, color, dash, facet)
    predicted = rows_of.read_rows(
        model, (model_columns.x, model_columns.y, *model_columns.parts.values()), "lines: model"
    )
    if columns.facet is None or model_columns.facet is not None:
        return _points(predicted, model_columns, MODEL, {})
    panels = rows_of.texts(rows, columns.facet, panel_text)
    return [
        row
        for panel in panels
        for row in _points(predicted, model_columns, MODEL, {"facet": panel})
    ]


def _is_scale(rows: Sequence[Row], x: str) -> bool:
    return all(rows_of.is_number(row[x]) for row in rows if row[x] is not None)


def _across(rows: Sequence[Row], x: str) -> Spec:
    values = rows_of.distinct(row[x] for row in rows if row[x] is not None)
    if not _is_scale(rows, x):
        axis = {"grid": False, "labelAngle": 0 if len(values) <= MOST_TICKS else -40}
        return field("x", "N", title=column_title(x), sort=rows_of.texts(rows, x), axis=axis)
    ticks = {"values": values} if len(values) <= MOST_TICKS else {}
    scale = {"zero": False, "nice": False, "padding": EDGE_PX}
    return field("x", "Q", title=column_title(x), scale=scale, axis=ticks)


def _tooltip(rows: Sequence[Row], columns: Columns) -> list[Spec]:
    return [hint("x", "Q" if _is_scale(rows, columns.x) else "N", column_title(columns.x)),
            hint("y", "Q", column_title(columns.y), ",.1f"),
            *(hint(split, "N", column_title(name)) for split, name in columns.parts.items()),
            hint("kind", "N", "Kind"), hint("n", "Q", "Values")]  # fmt: skip


def _text(split: str, name: str, value: Any) -> str:
    return panel_text(name, value) if split == "facet" else value_text(name, value)


def _place(value: Any, name: str) -> Any:
    return value if rows_of.is_number(value) else value_text(name, value)
