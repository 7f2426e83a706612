"""How a figure is put together: heading, panels side by side, and one sentence on what it shows."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from analysis.plot.theme import FACET_COLUMNS, FACET_HEIGHT, FACET_WIDTH
from analysis.plot.titles import column_title

Composite = alt.LayerChart | alt.FacetChart


def heading(title: str, below: str = "") -> dict[str, alt.Title]:
    """The property with the title and a line below it; a line alone becomes the title."""
    if not title and not below:
        return {}
    if not title or not below:
        return {"title": alt.Title(title or below)}
    return {"title": alt.Title(title, subtitle=below)}


def arrange(
    layers: Sequence[alt.Chart],
    panels: Sequence[str],
    zoomable: bool,
    size: tuple[float, float] | None = None,
) -> Composite:
    """``layers`` in one panel, or one for each value of the field ``facet`` as in ``panels``.

    A panel is ``size`` px wide and high, or as the theme has it; two stand abreast if they fit.
    A notebook may zoom it; in a page it stands still.
    """
    width, height = size or (FACET_WIDTH, FACET_HEIGHT)
    sized = {"width": width, "height": height} if size or panels else {}
    layered = alt.layer(*layers, **sized)
    if not panels:
        return layered.interactive() if zoomable else layered
    facet = alt.Facet("facet:N", sort=list(panels), title=None)
    abreast = FACET_COLUMNS if width <= FACET_WIDTH else 1
    faceted = layered.facet(facet=facet, columns=abreast)
    return faceted.interactive() if zoomable else faceted


def describe(value: str, over: str | None, parts: Sequence[str], points: int) -> str:
    """One sentence on what the drawing shows."""
    by = f" over {column_title(over)}" if over else ""
    split = f", by {' and '.join(column_title(name) for name in parts)}" if parts else ""
    return f"{column_title(value)}{by}{split}; {points} points"
