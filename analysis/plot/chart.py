"""Charts as Vega-Lite: what a figure is made of, as the plain dictionaries that Vega-Lite reads.

Source: https://vega.github.io/vega-lite/docs/.  Version 5 is what JupyterLab 4 draws by itself;
`analysis.plot.svg` draws for a page what is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from analysis.plot.rows import Row, column_title
from analysis.plot.svg import Spec, draw_figure
from analysis.plot.theme import (
    CONFIG,
    FACET_COLUMNS,
    FACET_HEIGHT,
    FACET_WIDTH,
    INK,
    SERIES,
    SHAPES,
)

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"
TYPES = {"Q": "quantitative", "N": "nominal"}
PATTERNS: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [12, 4], [5, 2, 1, 2])
MODEL_PATTERN = [4, 3]
MEASURED = "measured"
ZOOM = {"name": "zoom", "select": {"type": "interval", "encodings": ["x", "y"]}, "bind": "scales"}


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure; ``layers`` share one plot, or each of ``panels`` (values of the field ``facet``).

    ``properties`` are Vega-Lite's of the whole: title, description, width and height in px.  A
    ``zoomable`` figure can be zoomed and moved in a notebook; in a page it is still.
    """

    layers: tuple[Spec, ...]
    properties: Spec
    panels: tuple[str, ...] = ()
    panel_px: tuple[float, float] = (FACET_WIDTH, FACET_HEIGHT)
    zoomable: bool = False

    def sized(self, width_px: float, height_px: float | None = None) -> Plot:
        """Return the figure with a plot of that size; one of several panels keeps their own."""
        if self.panels:
            return self
        sizes = {"width": width_px, **({"height": height_px} if height_px else {})}
        return Plot(self.layers, self.properties | sizes, zoomable=self.zoomable)

    def to_dict(self, *, still: bool = False) -> Spec:
        """Return the whole Vega-Lite specification; ``still`` is without zoom, for a page."""
        layers = list(self.layers)
        if self.zoomable and not still:
            layers[0] = {**layers[0], "params": [ZOOM]}
        top = {"$schema": SCHEMA, "config": CONFIG, **self.properties}
        if not self.panels:
            return {**top, "layer": layers}
        width, height = self.panel_px
        return {**top, "facet": {**field("facet", "N"), "title": None, "sort": list(self.panels)},
                "columns": FACET_COLUMNS if width <= FACET_WIDTH else 1,
                "spec": {"layer": layers, "width": width, "height": height}}  # fmt: skip

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return what a notebook may show: to turn about, and still; nothing is fetched."""
        return {MIME: self.to_dict(), "image/svg+xml": draw(self),
                "text/plain": str(self.properties["description"])}  # fmt: skip


def draw(plot: Plot) -> str:
    """Return ``plot`` as an SVG document with fixed colours, as large as it is drawn."""
    return draw_figure(plot.to_dict(still=True)).as_document()


def to_svg(plot: Plot) -> str:
    """Return ``plot`` as an ``<svg>`` element to stand in an HTML page, light and dark."""
    return draw_figure(plot.to_dict(still=True)).as_element()


def mark(
    kind: str, encoding: Mapping[str, Any], *, only: str = "", more: Spec | None = None
) -> Spec:
    """Return a layer of marks, of all rows or of those for which the expression ``only`` holds."""
    filters = {"transform": [{"filter": only}]} if only else {}
    drawn = {name: channel for name, channel in encoding.items() if channel is not None}
    return {**filters, "mark": {"type": kind, **(more or {})}, "encoding": drawn}


def inline(rows: Iterable[Row]) -> Spec:
    """Return ``rows`` as data that travel inside the figure."""
    return {"data": {"values": list(rows)}}


def field(name: str, kind: str, **more: Any) -> Spec:
    """Return the channel of the field ``name``, of ``kind`` Q (a quantity) or N (a name)."""
    return {"field": name, "type": TYPES[kind], **more}


def hint(name: str, kind: str, title: str, form: str | None = None) -> Spec:
    """Return a line of what a notebook shows beside the pointer."""
    return field(name, kind, title=title, **({"format": form} if form else {}))


def color_of(name: str, column: str | None, values: Sequence[str]) -> Spec:
    """Return the colour of each of ``values`` of ``column``; without one the first colour."""
    if column is None:
        return {"value": SERIES[0].light}
    return _scaled(name, column_title(column), values, [colour.light for colour in SERIES])


def shape_of(name: str, column: str | None, values: Sequence[str]) -> Spec:
    """Return the point shape of each of ``values``, beside its colour; without a column a disc."""
    if column is None:
        return {"value": SHAPES[0]}
    return _scaled(name, column_title(column), values, SHAPES)


def pattern_of(
    name: str, column: str | None, values: Sequence[str], model: str | None
) -> Spec | None:
    """Return the line pattern of each of ``values``, and of what ``model`` names.

    Without a column the lines are MEASURED or ``model``; without both there is none.
    """
    if column is None and model is None:
        return None
    names = [*(values if column is not None else (MEASURED,)), *([model] if model else [])]
    patterns = list(islice(cycle(PATTERNS), len(names)))
    if model is not None:
        patterns[-1] = MODEL_PATTERN
    title = column_title(column) if column is not None else "Line"
    legend = {"symbolType": "stroke", "symbolSize": 300, "symbolStrokeColor": INK.light}
    return {**_scaled(name, title, names, patterns), "legend": legend}


def heading(title: str, below: str = "") -> Spec:
    """Return the property with the title and a line below it; a line alone becomes the title."""
    if not title and not below:
        return {}
    if not title or not below:
        return {"title": {"text": title or below}}
    return {"title": {"text": title, "subtitle": below}}


def describe(value: str, over: str | None, parts: Sequence[str], points: int) -> Spec:
    """Return the property with one sentence on what the figure shows."""
    by = f" over {column_title(over)}" if over else ""
    split = f", by {' and '.join(column_title(name) for name in parts)}" if parts else ""
    return {"description": f"{column_title(value)}{by}{split}; {points} points"}


def _scaled(name: str, title: str, values: Sequence[str], looks: Iterable[Any]) -> Spec:
    shown = list(islice(cycle(looks), len(values)))
    scale = {"domain": list(values), "range": shown}
    return field(name, "N", title=title, sort=list(values), scale=scale)
