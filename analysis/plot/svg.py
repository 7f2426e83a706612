"""Static SVG of a figure, for a page of any colour scheme, drawn by vl-convert."""

from __future__ import annotations

import hashlib
import re
from html import escape

import vl_convert

from analysis.plot.chart import Plot
from analysis.plot.theme import COLOURS, FONTS, LEAST_SCALE

VEGA_LITE = "5.21"
"""The version of Vega-Lite that draws, of those that come with vl-convert."""
SVG = re.compile(r'<svg\b[^>]*viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>(.*)</svg>', re.DOTALL)
IDENTIFIER = re.compile(r'\bid="([^"]+)"')
ATTRIBUTE = re.compile(r'="[^"]*"')
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")
FONT = re.compile(r'font-family="[^"]*"')


def draw(chart: Plot) -> str:
    """Return ``chart`` as vl-convert draws it, with fixed colours; nothing is fetched."""
    spec = chart.to_dict(still=True)
    return str(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[]))


def to_svg(chart: Plot) -> str:
    """Return the chart as an ``<svg>`` element to stand in an HTML page (no XML declaration).

    Equal charts give equal text.  The drawing is as wide as its surroundings, but not wider than
    it was drawn.  Its colours are the custom properties of `analysis.plot.theme.style_sheet`, with
    the light ones to fall back on.  Its title and description are read aloud.
    """
    found = SVG.search(draw(chart))
    assert found is not None, "the converter writes a sized <svg>"  # noqa: S101
    width, height, inner = float(found[1]), float(found[2]), found[3]
    inner = FONT.sub(f'font-family="{FONTS}"', inner)
    # A hundredth of a pixel is enough, and a third of the text.
    inner = ATTRIBUTE.sub(lambda attribute: LONG_NUMBER.sub(r"\1", attribute[0]), inner)
    inner = _with_own_ids(inner)
    for colour in COLOURS:
        inner = inner.replace(f'"{colour.light}"', f'"var(--{colour.name}, {colour.light})"')
    title = str(chart.properties.get("title", {}).get("text", ""))
    label = ". ".join(part for part in (title, chart.properties["description"]) if part)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'style="width: 100%; height: auto; max-width: {width:g}px; '
        f'min-width: {width * LEAST_SCALE:.0f}px" role="img" aria-label="{escape(label)}">'
        f"{f'<title>{escape(title, quote=False)}</title>' if title else ''}{inner}</svg>"
    )


def _with_own_ids(inner: str) -> str:
    """Return the same drawing with ids that follow from it, so that no two of a page share any.

    The converter counts them on from one drawing to the next.
    """
    found = list(dict.fromkeys(IDENTIFIER.findall(inner)))
    for place, name in enumerate(found):
        inner = re.sub(rf'(id="|url\(#|href="#){re.escape(name)}(?=["\)])', rf"\1@{place}@", inner)
    key = hashlib.sha256(inner.encode()).hexdigest()[:8]
    return re.sub(r'(id="|url\(#|href="#)@(\d+)@', rf"\1plot-{key}-\2", inner)
