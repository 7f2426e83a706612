"""Colours, point shapes and line patterns by value; the same value looks the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import altair as alt

from analysis.plot.theme import INK, SERIES, SHAPES
from analysis.plot.titles import column_title

PATTERNS: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [12, 4], [5, 2, 1, 2])
MODEL_PATTERN = [4, 3]
MEASURED = "measured"


def color_of(field: str, name: str | None, values: Sequence[str]) -> Any:
    """The colour of each of ``values`` of column ``name``; without one the first colour."""
    if name is None:
        return alt.value(SERIES[0].light)
    colours = list(islice(cycle(colour.light for colour in SERIES), len(values)))
    return alt.Color(
        f"{field}:N",
        title=column_title(name),
        sort=list(values),
        scale=alt.Scale(domain=list(values), range=colours),
    )


def shape_of(field: str, name: str | None, values: Sequence[str]) -> Any:
    """The point shape of each of ``values``, beside its colour; without a column a disc."""
    if name is None:
        return alt.value(SHAPES[0])
    shapes = list(islice(cycle(SHAPES), len(values)))
    return alt.Shape(
        f"{field}:N",
        title=column_title(name),
        sort=list(values),
        scale=alt.Scale(domain=list(values), range=shapes),
    )


def pattern_of(field: str, name: str | None, values: Sequence[str], model: str | None) -> Any:
    """The line pattern of each of ``values`` of column ``name``, and of what ``model`` names.

    Without a column the lines are MEASURED or ``model``; without both there is nothing to tell.
    """
    if name is None and model is None:
        return alt.Undefined
    names = [*(values if name is not None else (MEASURED,)), *([model] if model else [])]
    patterns = list(islice(cycle(PATTERNS), len(names)))
    if model is not None:
        patterns[-1] = MODEL_PATTERN
    return alt.StrokeDash(
        f"{field}:N",
        title=column_title(name) if name is not None else "Line",
        sort=names,
        scale=alt.Scale(domain=names, range=patterns),
        legend=alt.Legend(symbolType="stroke", symbolSize=300, symbolStrokeColor=INK.light),
    )
