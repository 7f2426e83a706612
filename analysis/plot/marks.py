"""Marks of a still drawing (SVG): text, lines, rectangles, and the element that holds them.

A drawing is made in the theme's light colours.  On a page each is a custom property, with the light
one to fall back on; as a document of its own it keeps them, and has a ground.
"""

from __future__ import annotations

from html import escape

from analysis.plot.theme import COLOURS, LEAST_SCALE, PAPER, VERDICTS


def as_document(width: float, height: float, inner: str, title: str, description: str) -> str:
    """Return a drawing as an SVG document of fixed size, with fixed colours.

    Screen readers read ``title`` and ``description`` aloud.
    """
    inner = rectangle(0, 0, width, height, f'fill="{PAPER.light}"') + inner
    size = f'width="{px(width)}" height="{px(height)}"'
    return _element(width, height, size, inner, title, description)


def as_element(width: float, height: float, inner: str, title: str, description: str) -> str:
    """Return a drawing as an ``<svg>`` element to stand in an HTML page (no XML declaration).

    It fills the width of its container, up to the width of the drawing.
    """
    for colour in (*COLOURS, *VERDICTS):
        inner = inner.replace(f'"{colour.light}"', f'"var(--{colour.name}, {colour.light})"')
    style = (
        f"width: 100%; height: auto; max-width: {width:.0f}px; "
        f"min-width: {width * LEAST_SCALE:.0f}px"
    )
    return _element(width, height, f'style="{style}"', inner, title, description)


def _element(
    width: float, height: float, attributes: str, inner: str, title: str, description: str
) -> str:
    label = ". ".join(part for part in (title, description) if part)
    named = f"<title>{escape(title, quote=False)}</title>" if title else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(width)} {px(height)}" '
        f'{attributes} role="img" aria-label="{escape(label)}">{named}{inner}</svg>'
    )


def rectangle(x: float, y: float, width: float, height: float, look: str) -> str:
    """Return a rectangle; ``look`` is its further attributes."""
    return f'<rect x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}" {look}/>'


def line(ends: tuple[float, float, float, float], look: str) -> str:
    """Return a line between two points, x before y; ``look`` is its further attributes."""
    x1, y1, x2, y2 = map(px, ends)
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {look}/>'


def write(
    x: float, y: float, text: str, *, anchor: str = "", fill: str = "", weight: str = "",
    size: int = 0, more: str = "",
) -> str:  # fmt: skip
    """Return a line of text that begins at a point, or is anchored there by ``anchor``."""
    attributes = {"text-anchor": anchor, "fill": fill, "font-weight": weight, "font-size": size}
    looks = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f'<text x="{px(x)}" y="{px(y)}"{looks}{more}>{escape(text, quote=False)}</text>'


def px(value: float) -> str:
    """Return px with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
