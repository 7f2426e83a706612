"""Empirical distributions: which share of the values is at most so large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import pandas as pd

from analysis.plot import rows as rows_of
from analysis.plot.panels import arrange, describe, heading
from analysis.plot.rows import Row
from analysis.plot.scales import color_of
from analysis.plot.theme import Plot
from analysis.plot.titles import column_title, value_text
from analysis.words import axis_value, count

# Finer than a pixel of the drawing.
STEPS = 500


def cdf(
    frame: pd.DataFrame,
    value: str,
    by: str | None = None,
    title: str = "",
    x_max: float | None = None,
) -> Plot:
    """Draw the empirical distribution of column ``value`` as steps from 0 to 100 %.

    Args:
        frame: one row for each value; rows without ``value`` are left out.
        value: a number; the axis starts at zero unless values are negative.
        by: one line for each value of this column.
        title: above the figure.
        x_max: the axis ends here; how many values lie beyond is said below the title.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows_of.check_columns(frame, (value, by), "cdf")
    everything = rows_of.numbers(frame[value])
    rows_of.check_drawable(everything, "cdf", (value,))
    start, end = min(0.0, *everything), max(everything) if x_max is None else x_max
    texts = rows_of.texts(by, frame[by]) if by is not None else []
    steps = alt.Chart(rows_of.inline(_rows(frame, value, by, start, end)))
    scale = alt.Scale(domain=[start, end], nice=x_max is None)
    line = steps.mark_line(interpolate="step-after", clip=True).encode(
        x=alt.X("x:Q", title=column_title(value), scale=scale),
        y=alt.Y("y:Q", title="Share of values (%)", scale=alt.Scale(domain=[0, 100])),
        color=color_of("color", by, texts),
        tooltip=[
            alt.Tooltip("x:Q", title=column_title(value), format=",.1f"),
            alt.Tooltip("y:Q", title="Share (%)", format=".1f"),
            *([alt.Tooltip("color:N", title=column_title(by))] if by is not None else []),
            alt.Tooltip("n:Q", title="Values"),
        ],
    )
    return arrange([line], [], zoomable=True).properties(
        description=describe(value, None, rows_of.given(by), len(everything)),
        **heading(title, _beyond(everything, value, end)),
    )


def _rows(
    frame: pd.DataFrame, value: str, by: str | None, start: float, end: float
) -> Iterator[Row]:
    for key, part in rows_of.groups(frame, rows_of.given(by)):
        values = rows_of.numbers(part[value])
        named = {"color": value_text(by, key[0])} if by is not None else {}
        for x, share in steps_of(values, start, end):
            yield {"x": x, "y": share, "n": len(values), **named}


def _beyond(values: Sequence[float], name: str, end: float) -> str:
    beyond = sum(value > end for value in values)
    if not beyond:
        return ""
    return f"{count(beyond, 'value lies', 'values lie')} beyond {axis_value(name, end)}"


def steps_of(values: Sequence[float], start: float, end: float) -> list[tuple[float, float]]:
    """Where the distribution of ``values`` steps up, and to which percentage, from start to end.

    Steps finer than one in STEPS are drawn as one, the last of them.
    """
    ordered = sorted(values)
    if not ordered:
        return []
    found = [(start, 0.0)]
    for place, one in enumerate(ordered, 1):
        last = place == len(ordered) or ordered[place] > end
        equal = not last and ordered[place] == one
        coarse = place * STEPS // len(ordered) > (place - 1) * STEPS // len(ordered)
        if one <= end and not equal and (coarse or last):
            found.append((one, 100.0 * place / len(ordered)))
    return [*found, (end, found[-1][1])]
