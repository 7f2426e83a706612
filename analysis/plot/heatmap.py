"""Heatmaps: one value for each pair of two swept quantities, written into its cell."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.plot import rows as rows_of
from analysis.plot.chart import Plot, describe, field, heading, hint, inline, mark
from analysis.plot.rows import Data, Row, column_title, decimals, panel_text, value_text
from analysis.plot.svg import Spec
from analysis.plot.theme import FACET_WIDTH, LESS, MORE, PANEL_WIDTH
from analysis.words import number

# One hue over the ground: strong enough to be seen, and never so strong that the text on it is
# not (4.5:1 in both colour schemes).
FAINTEST, STRONGEST = 0.06, 0.6
CELL_PX = (36, 84)
ROW_PX = 30
FLAT = {"labelAngle": 0, "grid": False, "domain": False, "ticks": False}


def heatmap(
    data: Data, x: str, y: str, value: str, facet: str | None = None, title: str = "",
    diverging: bool = False,
) -> Plot:  # fmt: skip
    """Draw column ``value`` (the median of equal cells) over the columns ``x`` and ``y``.

    Args:
        data: one row for each value; rows without ``value`` are left out, and their cell is empty.
        x: numbers in rising order, names in order of appearance.
        y: as ``x``, from top to bottom.
        value: stronger colour means more; all panels share one scale.
        facet: one panel for each value of this column, two abreast.
        title: above the figure.
        diverging: the scale has its middle at 0, with one hue above and another below.

    Raises:
        ConfigurationError: a column is not there, or there is nothing to draw.
    """
    rows = rows_of.read_rows(data, (x, y, value, facet), "heatmap")
    cells = _cells(rows, x, y, value, facet)
    rows_of.check_drawable(cells, "heatmap", (value,))
    _paint(cells, diverging)
    wide, high = rows_of.texts(rows, x), rows_of.texts(rows, y)
    panels = tuple(rows_of.texts(rows, facet, panel_text))
    shared = {
        "x": field("x", "N", title=column_title(x), sort=wide, scale=_all(wide), axis=FLAT),
        # A title beside a few rows would be longer than they are high: it is above.
        "y": field("y", "N", title=None, sort=high, scale=_all(high), axis=FLAT),
        "tooltip": [
            hint("x", "N", column_title(x)),
            hint("y", "N", column_title(y)),
            hint("value", "Q", column_title(value)),
            hint("n", "Q", "Values"),
        ],
    }
    fields = mark("rect", {
        **shared, "fill": field("hue", "N", scale=None, legend=None),
        "fillOpacity": field("strength", "Q", scale=None, legend=None),
    })  # fmt: skip
    words = mark("text", {**shared, "text": field("text", "N")}, more={"baseline": "middle"})
    size = (_step(len(wide), paired=len(panels) > 1) * len(wide), ROW_PX * len(high))
    scale = "blue above zero, orange below" if diverging else "the stronger, the more"
    legend = f"{column_title(value)}; rows: {column_title(y)}; {scale}"
    properties = {**inline(cells), **describe(value, None, rows_of.given(x, y, facet), len(cells)),
                  **heading(title, legend)}  # fmt: skip
    if not panels:
        properties |= {"width": size[0], "height": size[1]}
    return Plot((fields, words), properties, panels, size)


def _cells(rows: Sequence[Row], x: str, y: str, value: str, facet: str | None) -> list[Row]:
    """Return the median of the values of each cell that has any."""
    names = rows_of.given(x, y, facet)
    cells: list[Row] = []
    for key, part in rows_of.groups((r for r in rows if r[value] is not None), names).items():
        values = rows_of.numbers(row[value] for row in part)
        if not values:
            continue
        known = dict(zip(names, key, strict=True))
        cell: Row = {"x": value_text(x, known[x]), "y": value_text(y, known[y])}
        if facet is not None:
            cell["facet"] = panel_text(facet, known[facet])
        cells.append({**cell, "value": statistics.median(values), "n": len(values)})
    return cells


def _paint(cells: list[Row], diverging: bool) -> None:
    """Set the text, the hue and the opacity of each cell."""
    values = [cell["value"] for cell in cells]
    places = decimals(values)
    low = 0.0 if diverging else min(values)
    span = max(abs(value - low) for value in values) or 1.0
    for cell in cells:
        distance = cell["value"] - low
        cell["text"] = number(cell["value"], places)
        cell["hue"] = (MORE if distance >= 0 else LESS).light
        cell["strength"] = round(FAINTEST + (STRONGEST - FAINTEST) * abs(distance) / span, 3)


def _step(columns: int, paired: bool) -> int:
    """Return the width of a cell: two panels abreast if that leaves room for the numbers."""
    least, most = CELL_PX
    half = FACET_WIDTH // columns
    return max(least, min(most, half if paired and half >= least else PANEL_WIDTH // columns))


def _all(values: list[str]) -> Spec:
    return {"domain": values, "paddingInner": 0.04, "paddingOuter": 0.02}
