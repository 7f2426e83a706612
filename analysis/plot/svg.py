"""Charts as static SVG: for a page of any colour scheme, or as a file of its own."""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from analysis.plot.theme import COLOURS, FONTS, LEAST_SCALE, Plot
from testbed.base.whole_file import write_whole

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
OPENING = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')
IDENTIFIER = re.compile(r'\bid="([^"]+)"')
ATTRIBUTE = re.compile(r'="[^"]*"')
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")
FONT = re.compile(r'font-family="[^"]*"')


def unchecked() -> AbstractContextManager[None]:
    """While it lasts charts are made without validating every part of them: a third of their time.

    For drawing many charts that tests have made before.
    """
    return debug_mode(False)


def to_svg(chart: Plot) -> str:
    """The chart as an ``<svg>`` element to stand in an HTML page (no XML declaration).

    Equal charts give equal text.  The drawing is as wide as its surroundings, but not wider than
    it was drawn.  Its colours are the custom properties of ``style_sheet``, with the light ones to
    fall back on.  Its title and description are read aloud.
    """
    spec = chart.to_dict(validate=False)  # as a whole: see unchecked() for its parts
    width, height, inner = _drawing(spec)
    for colour in COLOURS:
        inner = inner.replace(f'"{colour.light}"', f'"var(--{colour.name}, {colour.light})"')
    style = (
        f"width: 100%; height: auto; max-width: {width:g}px; min-width: {width * LEAST_SCALE:.0f}px"
    )
    return _element(spec, width, height, inner, f'style="{style}"')


def save(chart: Plot, path: Path) -> None:
    """Write the chart as an SVG file with fixed colours on a white ground.

    Raises:
        StorageError: the file cannot be written.
    """
    spec = chart.to_dict()
    width, height, inner = _drawing(spec)
    text = _element(spec, width, height, inner, f'width="{width:g}" height="{height:g}"')
    write_whole(path, text + "\n", "choose a folder that you may write to")


def static(spec: dict[str, Any]) -> dict[str, Any]:
    """``spec`` without what reacts to a pointer, which would clip marks at the panel's edge."""
    bare: dict[str, Any] = {}
    for name, value in spec.items():
        if name == "params":
            kept = [one for one in value if "select" not in one]
            if kept:
                bare[name] = kept
        elif isinstance(value, dict) and name != "datasets":
            bare[name] = static(value)
        elif isinstance(value, list) and name in ("layer", "hconcat", "vconcat", "concat"):
            bare[name] = [static(one) for one in value]
        else:
            bare[name] = value
    return bare


def _drawing(spec: dict[str, Any]) -> tuple[float, float, str]:
    """Width and height in px, and all that is inside the ``<svg>`` element."""
    text = vl_convert.vegalite_to_svg(static(spec), vl_version=VEGA_LITE, allowed_base_urls=[])
    opening = OPENING.search(text)
    size = SIZE.search(text)
    assert opening is not None and size is not None, "the converter writes a sized <svg>"  # noqa: S101
    inner = text[opening.end() : text.rindex("</svg>")]
    inner = FONT.sub(f'font-family="{FONTS}"', inner)
    # A hundredth of a pixel is enough, and a third of the text.
    inner = ATTRIBUTE.sub(lambda found: LONG_NUMBER.sub(r"\1", found[0]), inner)
    return float(size[1]), float(size[2]), _with_own_ids(inner)


def _with_own_ids(inner: str) -> str:
    """The same drawing with ids that follow from it, so that no two drawings of a page share any.

    The converter counts them on from one drawing to the next.
    """
    found = list(dict.fromkeys(IDENTIFIER.findall(inner)))
    for place, name in enumerate(found):
        inner = re.sub(rf'(id="|url\(#|href="#){re.escape(name)}(?=["\)])', rf"\1@{place}@", inner)
    key = hashlib.sha256(inner.encode()).hexdigest()[:8]
    return re.sub(r'(id="|url\(#|href="#)@(\d+)@', rf"\1plot-{key}-\2", inner)


def _element(spec: dict[str, Any], width: float, height: float, inner: str, attributes: str) -> str:
    title, description = _words(spec.get("title")), str(spec.get("description", ""))
    label = ". ".join(part for part in (title, description) if part) or "Figure"
    heading = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'{attributes} role="img" aria-label={quoteattr(label)}>{heading}{inner}</svg>'
    )


def _words(title: Any) -> str:
    text = title.get("text", "") if isinstance(title, dict) else title or ""
    return " ".join(text) if isinstance(text, list) else str(text)
