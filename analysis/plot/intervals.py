"""Intervals: an estimate with its confidence interval, or a median with its range, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from analysis.plot import rows as rows_of
from analysis.plot.panels import describe, heading
from analysis.plot.rows import Row
from analysis.plot.scales import color_of, shape_of
from analysis.plot.theme import PANEL_WIDTH, SOFT, Plot
from analysis.plot.titles import column_title, value_text

ROW_PX = 22
LANE_PX = 14
LABELS_PX = 120


def intervals(
    frame: pd.DataFrame,
    label: str,
    value: str,
    low: str,
    high: str,
    color: str | None = None,
    title: str = "",
) -> Plot:
    """Draw column ``value`` as a point and ``low`` to ``high`` as a line, one row for each label.

    Args:
        frame: one row for each interval; rows without ``value`` keep their label and stay empty.
        label: names the rows, in order of appearance.
        value: a number; it names the axis.
        low: lower end in the unit of ``value``; NaN where there is none.
        high: upper end, likewise.
        color: intervals of one label side by side, one colour for each value of this column.
        title: above the figure.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows_of.check_columns(frame, (label, value, low, high, color), "intervals")
    found = _rows(frame, label, value, low, high, color)
    rows_of.check_drawable(rows_of.numbers(frame[value]), "intervals", (value,))
    labels = rows_of.texts(label, frame[label])
    lanes = rows_of.texts(color, frame[color]) if color is not None else []
    base = _base(found, labels, lanes, label, color)
    named = column_title(value)
    layers: list[alt.Chart] = [
        base.transform_filter("datum.low != null")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=named), x2="high:Q"),
        base.transform_filter("datum.value != null")
        .mark_point()
        .encode(
            x=alt.X("value:Q", title=named, scale=alt.Scale(zero=False, padding=8)),
            shape=shape_of("color", color, lanes),
        ),
    ]
    if _spans_zero(found):
        zero = alt.Chart(rows_of.inline([{"zero": 0}])).mark_rule(color=SOFT.light, strokeWidth=1)
        layers.insert(0, zero.encode(x=alt.X("zero:Q", title=named)))
    return alt.layer(*layers).properties(
        width=PANEL_WIDTH - LABELS_PX,
        height=len(labels) * max(ROW_PX, LANE_PX * len(lanes) + 6),
        description=describe(value, label, rows_of.given(color), len(found)),
        **heading(title),
    )


def _base(
    found: Sequence[Row], labels: list[str], lanes: list[str], label: str, color: str | None
) -> alt.Chart:
    """What points and lines share: the row of each label, the lane in it, and the tooltip."""
    named = [alt.Tooltip("label:N", title=column_title(label))]
    if color is not None:
        named.append(alt.Tooltip("color:N", title=column_title(color)))
    ends = [alt.Tooltip(f"{name}:Q", title=name.capitalize()) for name in ("value", "low", "high")]
    axis = alt.Axis(grid=True, tickBand="extent")
    base = alt.Chart(rows_of.inline(found)).encode(
        y=alt.Y("label:N", title=None, sort=labels, scale=alt.Scale(domain=labels), axis=axis),
        color=color_of("color", color, lanes),
        tooltip=[*named, *ends],
    )
    if len(lanes) < 2:
        return base
    scale = alt.Scale(domain=lanes)
    return base.encode(yOffset=alt.YOffset("color:N", sort=lanes, scale=scale))


def _rows(
    frame: pd.DataFrame, label: str, value: str, low: str, high: str, color: str | None
) -> list[Row]:
    names = rows_of.given(label, value, low, high, color)
    found: list[Row] = []
    for values in frame[names].itertuples(index=False, name=None):
        known = {name: rows_of.plain(one) for name, one in zip(names, values, strict=True)}
        row: Row = {"label": value_text(label, known[label]), "value": known[value]}
        whole = known[low] is not None and known[high] is not None
        row |= {"low": known[low] if whole else None, "high": known[high] if whole else None}
        if color is not None:
            row["color"] = value_text(color, known[color])
        found.append(row)
    return found


def _spans_zero(found: Sequence[Row]) -> bool:
    ends = [row[name] for row in found for name in ("value", "low", "high")]
    numbers = rows_of.numbers(ends)
    return min(numbers) < 0 < max(numbers)
