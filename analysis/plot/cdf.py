"""Empirical distribution functions: the share of values up to each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analysis.plot import rows as rows_of
from analysis.plot.chart import Plot, color_of, describe, field, heading, hint, inline, mark
from analysis.plot.rows import Data, Row, column_title, value_text
from analysis.words import axis_value, count

# Finer than a pixel of the drawing.
STEPS = 500


def cdf(
    data: Data, value: str, by: str | None = None, title: str = "", x_max: float | None = None,
    x_min: float | None = None, half_width_pct: Callable[[int], float] | None = None,
) -> Plot:  # fmt: skip
    """Draw the empirical distribution of column ``value`` as steps from 0 to 100 %.

    Args:
        data: one row for each value; rows without ``value`` are left out.
        value: a number; the axis starts at zero unless values are negative.
        by: one line for each value of this column.
        title: above the figure.
        x_max: the axis ends here; how many values lie beyond is said below the title.
        x_min: the axis starts here, not at zero.
        half_width_pct: of a band around a line of so many values, in percentage points.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows = rows_of.read_rows(data, (value, by), "cdf")
    everything = rows_of.numbers(row[value] for row in rows)
    rows_of.check_drawable(everything, "cdf", (value,))
    start = min(0.0, *everything) if x_min is None else x_min
    end = max(everything) if x_max is None else x_max
    named = column_title(value)
    scale = {"domain": [start, end], "nice": x_max is None and x_min is None}
    line = mark(
        "line",
        {
            "x": field("x", "Q", title=named, scale=scale),
            "y": field("y", "Q", title="Share of values (%)", scale={"domain": [0, 100]}),
            "color": color_of("color", by, rows_of.texts(rows, by)),
            "tooltip": [hint("x", "Q", named, ",.1f"), hint("y", "Q", "Share (%)", ".1f"),
                        *([hint("color", "N", column_title(by))] if by is not None else []),
                        hint("n", "Q", "Values")],
        },
        more={"interpolate": "step-after", "clip": True},
    )  # fmt: skip
    layers = [line]
    steps = list(_steps(rows, value, by, start, end))
    if half_width_pct is not None:
        for step in steps:
            half = half_width_pct(step["n"])
            step |= {"low": max(step["y"] - half, 0.0), "high": min(step["y"] + half, 100.0)}
        channels = line["encoding"]
        edges = {"y": {**channels["y"], "field": "low"}, "y2": {"field": "high"}}
        edges |= {name: channels[name] for name in ("x", "color")}
        layers.insert(0, mark("area", edges, more={"interpolate": "step-after", "opacity": 0.16}))
    properties = {**inline(steps), **describe(value, None, rows_of.given(by), len(everything)),
                  **heading(title, _beyond(everything, value, end))}  # fmt: skip
    return Plot(tuple(layers), properties, zoomable=True)


def steps_of(values: Sequence[float], start: float, end: float) -> list[tuple[float, float]]:
    """Return the steps of the distribution from start to end: each value and its percentage.

    At most STEPS of them are drawn: of steps that are closer, only the last.
    """
    ordered = sorted(values)
    if not ordered:
        return []
    steps = [(start, 0.0)]
    for place, value in enumerate(ordered, 1):
        last = place == len(ordered) or ordered[place] > end
        equal = not last and ordered[place] == value
        coarse = place * STEPS // len(ordered) > (place - 1) * STEPS // len(ordered)
        if value <= end and not equal and (coarse or last):
            steps.append((value, 100.0 * place / len(ordered)))
    return [*steps, (end, steps[-1][1])]


def _steps(
    rows: Sequence[Row], value: str, by: str | None, start: float, end: float
) -> Iterator[Row]:
    for key, part in rows_of.groups(rows, rows_of.given(by)).items():
        values = rows_of.numbers(row[value] for row in part)
        named = {"color": value_text(by, key[0])} if by is not None else {}
        for x, share in steps_of(values, start, end):
            yield {"x": x, "y": share, "n": len(values), **named}


def _beyond(values: Sequence[float], name: str, end: float) -> str:
    beyond = sum(value > end for value in values)
    if not beyond:
        return ""
    return f"{count(beyond, 'value lies', 'values lie')} beyond {axis_value(name, end)}"
