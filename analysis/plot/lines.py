"""Lines: a measured quantity over a swept one, with what a model predicts beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from analysis.plot import rows as rows_of
from analysis.plot.panels import arrange, describe, heading
from analysis.plot.rows import Row
from analysis.plot.scales import MEASURED, color_of, pattern_of, shape_of
from analysis.plot.theme import INK, Plot
from analysis.plot.titles import column_title, panel_text, value_text

MODEL = "model"
# With more, the axis chooses its own ticks.
MOST_TICKS = 8
EDGE_PX = 10


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one figure; those that a frame does not have are ``None``."""

    x: str
    y: str
    color: str | None
    dash: str | None
    facet: str | None

    @property
    def parts(self) -> dict[str, str]:
        """Columns that split the values, by the field that they become."""
        split = {"color": self.color, "dash": self.dash, "facet": self.facet}
        return {field: name for field, name in split.items() if name is not None}


def lines(
    frame: pd.DataFrame,
    x: str,
    y: str,
    color: str | None = None,
    dash: str | None = None,
    facet: str | None = None,
    title: str = "",
    model: pd.DataFrame | None = None,
) -> Plot:
    """Draw column ``y`` over column ``x``: the median of equal points, and their range if any.

    Args:
        frame: one row for each value; rows without ``x`` or ``y`` are left out.
        x: a number, drawn to scale, or a name, drawn in order of appearance.
        y: a number; the axis starts at zero.
        color: one colour and one point shape for each value of this column.
        dash: one line pattern for each value of this column.
        facet: one panel for each value of this column, two abreast, with the same axes.
        title: above the figure.
        model: a frame with the same columns (those of ``color``, ``dash`` and ``facet`` may be
            left out), drawn as dashed lines without points.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    columns = Columns(x, y, color, dash, facet)
    rows_of.check_columns(frame, (x, y, *columns.parts.values()), "lines")
    points = _points(frame, columns, MEASURED, {})
    rows_of.check_drawable(points, "lines", (x, y))
    if model is not None:
        points += _model_points(frame, model, columns)
    base = alt.Chart(rows_of.inline(points))
    layers = _layers(base, frame, columns, points, drawn_model=model is not None)
    panels = rows_of.texts(facet, frame[facet], panel_text) if facet else []
    chart = arrange(layers, panels, rows_of.is_number(frame, x))
    return chart.properties(
        description=describe(y, x, rows_of.given(color, dash, facet), len(points)),
        **heading(title),
    )


def _layers(
    base: alt.Chart, frame: pd.DataFrame, columns: Columns, points: Sequence[Row], drawn_model: bool
) -> list[alt.Chart]:
    across, tooltip = _across(frame, columns.x), _tooltip(frame, columns)
    up = alt.Y("y:Q", title=column_title(columns.y), scale=alt.Scale(zero=True, nice=5))
    colors = _texts(frame, columns.color)
    drawn = {"x": across, "y": up, "color": color_of("color", columns.color, colors)}
    dashes = _texts(frame, columns.dash)
    pattern = pattern_of("pattern", columns.dash, dashes, MODEL if drawn_model else None)
    # Lines of one pattern may be several: each value of the dash column is a line of its own.
    lined = {**drawn, "strokeDash": pattern, "detail": alt.Detail("dash:N")}
    measured = base.transform_filter(f"datum.kind == '{MEASURED}'")
    layers = [
        measured.mark_line().encode(**lined),
        measured.mark_point().encode(
            **drawn, shape=shape_of("color", columns.color, colors), tooltip=tooltip
        ),
    ]
    if any(row["high"] > row["low"] for row in points):
        ranges = measured.transform_filter("datum.high > datum.low").mark_rule(strokeWidth=1.5)
        ends = {"y": alt.Y("low:Q", title=column_title(columns.y)), "y2": alt.Y2("high:Q")}
        layers.append(ranges.encode(**{**drawn, **ends}))
    if drawn_model:
        # Over the measured lines, and thin: where they agree, both are seen.
        predicted = base.transform_filter(f"datum.kind == '{MODEL}'")
        if not any("color" in row for row in points if row["kind"] == MODEL):
            lined["color"] = alt.value(INK.light)
        layers.append(predicted.mark_line(strokeWidth=1.3).encode(**lined, tooltip=tooltip))
    return layers


def _points(
    frame: pd.DataFrame, columns: Columns, kind: str, fixed: Mapping[str, str]
) -> list[Row]:
    """The median and range of the values at each point of each line."""
    parts = columns.parts
    whole = frame.dropna(subset=[columns.x, columns.y])
    found: list[Row] = []
    for key, part in rows_of.groups(whole, rows_of.given(columns.x, *parts.values())):
        known = dict(zip(rows_of.given(columns.x, *parts.values()), key, strict=True))
        values = rows_of.numbers(part[columns.y])
        if not values:
            continue
        words = {field: _text(field, name, known[name]) for field, name in parts.items()}
        found.append(
            {
                "kind": kind,
                "x": _place(known[columns.x], columns.x),
                "y": statistics.median(values),
                "low": min(values),
                "high": max(values),
                "n": len(values),
                **fixed,
                **words,
                "pattern": words.get("dash", MEASURED) if kind == MEASURED else kind,
            }
        )
    return found


def _model_points(frame: pd.DataFrame, model: pd.DataFrame, columns: Columns) -> list[Row]:
    """The model's points; in every panel where the model knows of none."""
    rows_of.check_columns(model, (columns.x, columns.y), "lines: model")
    color, dash, facet = (
        name if name in model.columns else None
        for name in (columns.color, columns.dash, columns.facet)
    )
    own = Columns(columns.x, columns.y, color, dash, facet)
    if columns.facet is None or own.facet is not None:
        return _points(model, own, MODEL, {})
    panels = rows_of.texts(columns.facet, frame[columns.facet], panel_text)
    return [row for panel in panels for row in _points(model, own, MODEL, {"facet": panel})]


def _across(frame: pd.DataFrame, x: str) -> alt.X:
    values = rows_of.distinct(frame[x].dropna())
    if not rows_of.is_number(frame, x):
        axis = alt.Axis(grid=False, labelAngle=0 if len(values) <= MOST_TICKS else -40)
        return alt.X("x:N", title=column_title(x), sort=_texts(frame, x), axis=axis)
    ticks = alt.Axis(values=values) if len(values) <= MOST_TICKS else alt.Axis()
    scale = alt.Scale(zero=False, nice=False, padding=EDGE_PX)
    return alt.X("x:Q", title=column_title(x), scale=scale, axis=ticks)


def _tooltip(frame: pd.DataFrame, columns: Columns) -> list[alt.Tooltip]:
    number = rows_of.is_number(frame, columns.x)
    return [
        alt.Tooltip("x:Q" if number else "x:N", title=column_title(columns.x)),
        alt.Tooltip("y:Q", title=column_title(columns.y), format=",.1f"),
        *(
            alt.Tooltip(f"{field}:N", title=column_title(name))
            for field, name in columns.parts.items()
        ),
        alt.Tooltip("kind:N", title="Kind"),
        alt.Tooltip("n:Q", title="Values"),
    ]


def _texts(frame: pd.DataFrame, name: str | None) -> list[str]:
    return rows_of.texts(name, frame[name]) if name is not None else []


def _text(field: str, name: str, value: Any) -> str:
    return panel_text(name, value) if field == "facet" else value_text(name, value)


def _place(value: Any, name: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if number else value_text(name, value)
