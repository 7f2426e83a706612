"""Marks of a still drawing (SVG): text, lines, rectangles, and the element that holds them.

A drawing is made in the theme's light colours.  On a page each is a custom property, with the light
one to fall back on; as a document of its own it keeps them, and has a ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from analysis.plot.theme import COLOURS, LEAST_SCALE, PAPER, VERDICTS


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of a size in px; screen readers read ``title`` and ``description`` aloud."""

    width: float
    height: float
    inner: str
    title: str
    description: str

    def as_document(self) -> str:
        """Return it as an SVG document of fixed size, with fixed colours."""
        ground = rectangle(0, 0, self.width, self.height, f'fill="{PAPER.light}"')
        size = f'width="{px(self.width)}" height="{px(self.height)}"'
        return self._element(size, ground + self.inner)

    def as_element(self) -> str:
        """Return it as an ``<svg>`` element to stand in an HTML page (no XML declaration).

        It fills the width of its container, up to the width of the drawing.
        """
        inner = self.inner
        for colour in (*COLOURS, *VERDICTS):
            inner = inner.replace(f'"{colour.light}"', f'"var(--{colour.name}, {colour.light})"')
        style = (
            f"width: 100%; height: auto; max-width: {self.width:.0f}px; "
            f"min-width: {self.width * LEAST_SCALE:.0f}px"
        )
        return self._element(f'style="{style}"', inner)

    def _element(self, attributes: str, inner: str) -> str:
        label = ". ".join(part for part in (self.title, self.description) if part)
        named = f"<title>{escape(self.title, quote=False)}</title>" if self.title else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {px(self.width)} {px(self.height)}" '
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
