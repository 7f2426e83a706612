"""Paired bars: a few values side by side for each label, such as ours beside the published."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.plot import rows as rows_of
from analysis.plot.panels import describe, heading
from analysis.plot.rows import Row
from analysis.plot.scales import color_of
from analysis.plot.theme import PANEL_WIDTH, Plot
from analysis.plot.titles import column_title, decimals, value_text
from analysis.words import number

BAR_PX = 17
GAP_PX = 8
LABELS_PX = 120
NUMBER_SHARE = 0.22


def paired(frame: pd.DataFrame, label: str, value: str, by: str, title: str = "") -> Plot:
    """Draw column ``value`` as horizontal bars from zero, one for each value of ``by``.

    Args:
        frame: one row for each bar; rows without ``value`` leave a gap.
        label: names the groups of bars, in order of appearance.
        value: a number; it names the axis and stands at the end of its bar.
        by: one colour for each value of this column, in order of appearance.
        title: above the figure.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows_of.check_columns(frame, (label, value, by), "paired")
    bars = _bars(frame, label, value, by)
    rows_of.check_drawable(bars, "paired", (value,))
    labels, lanes = rows_of.texts(label, frame[label]), rows_of.texts(by, frame[by])
    base = alt.Chart(rows_of.inline(bars)).encode(
        x=alt.X("value:Q", title=column_title(value), scale=_scale(bars)),
        y=alt.Y("label:N", title=None, sort=labels, scale=alt.Scale(domain=labels)),
        yOffset=alt.YOffset("color:N", sort=lanes, scale=alt.Scale(domain=lanes)),
        tooltip=[
            alt.Tooltip("label:N", title=column_title(label)),
            alt.Tooltip("color:N", title=column_title(by)),
            alt.Tooltip("value:Q", title=column_title(value)),
        ],
    )
    layers: list[alt.Chart] = [
        base.mark_bar().encode(color=color_of("color", by, lanes)),
        base.transform_filter("datum.value >= 0")
        .mark_text(align="left", dx=4)
        .encode(text="text:N"),
        base.transform_filter("datum.value < 0")
        .mark_text(align="right", dx=-4)
        .encode(text="text:N"),
    ]
    return alt.layer(*layers).properties(
        width=PANEL_WIDTH - LABELS_PX,
        height=len(labels) * (BAR_PX * len(lanes) + GAP_PX),
        description=describe(value, label, (by,), len(bars)),
        **heading(title),
    )


def _scale(bars: list[Row]) -> alt.Scale:
    """From zero to beyond the ends, so that the numbers have room there."""
    values = [bar["value"] for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    room = NUMBER_SHARE * (high - low)
    return alt.Scale(domain=[low - room * (low < 0), high + room * (high > 0)], nice=False)


def _bars(frame: pd.DataFrame, label: str, value: str, by: str) -> list[Row]:
    whole = frame.dropna(subset=[value])
    places = decimals(rows_of.numbers(whole[value]))
    columns = (whole[name].tolist() for name in (label, value, by))
    return [
        {
            "label": value_text(label, rows_of.plain(named)),
            "value": rows_of.plain(one),
            "color": value_text(by, rows_of.plain(lane)),
            "text": number(float(one), places),
        }
        for named, one, lane in zip(*columns, strict=True)
    ]
