"""Ladder diagrams: packets as arrows between lifelines, time running down.

As textbooks draw protocols: an arrow leaves when a packet was sent and ends when it arrived.  It
can be printed in black and white: no meaning is in colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analysis.plot.ladder_layout import HEAD_PX, PAD_PX, Layout, Stroke, Text, lay_out
from analysis.plot.marks import Picture, line, px, rectangle, write
from analysis.plot.sequence import Exchange
from analysis.plot.theme import FONTS, INK, LINE, PAPER, SERIES, SOFT, TEXT_PX

HEAD_LONG_PX, HEAD_WIDE_PX = 9.0, 3.6
CROSS_PX = 5.0
KNOT_PX = 3.0
BAND_PX = 12.0
BOX_PX = 92.0
SLASH_PX = 6.0
MORE_DASHES = "5 4"
LEADER_DASHES = "1 3"


@dataclass(frozen=True, slots=True)
class Ladder:
    """A ladder diagram with its title; a notebook shows it as it is."""

    exchange: Exchange
    title: str = ""

    @property
    def said(self) -> str:
        """What is read aloud."""
        sent = len(self.exchange.rungs)
        return f"Ladder diagram of {sent} packets between {', '.join(self.exchange.hosts)}"

    def to_svg(self) -> str:
        """Return it as an ``<svg>`` element to stand in an HTML page, light and dark."""
        return self._picture().as_element()

    def draw(self) -> str:
        """Return it as an SVG document with fixed colours."""
        return self._picture().as_document()

    def _picture(self) -> Picture:
        layout = lay_out(self.exchange)
        return Picture(layout.width, layout.height, _drawing(layout), self.title, self.said)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return what a notebook may show."""
        return {"image/svg+xml": self.draw(), "text/plain": self.said}


def _drawing(layout: Layout) -> str:
    """Return all that is inside the ``<svg>`` element."""
    bottom = layout.height - PAD_PX
    parts = [*_lifelines(layout, bottom), *_leaders(layout)]
    parts += [part for stroke in layout.strokes for part in _arrow(stroke)]
    parts += map(_words, layout.texts)
    shared = f'font-family="{FONTS}" font-size="{TEXT_PX}" fill="{INK.light}"'
    return f"<g {shared}>{''.join(parts)}</g>"


def _lifelines(layout: Layout, bottom: float) -> Iterator[str]:
    """Yield the hosts' boxes and lines, broken where time is folded, and the middlebox's band."""
    if layout.middle is not None:
        x, high = layout.middle - BAND_PX / 2, bottom - layout.top
        look = f'rx="3" fill="{LINE.light}" fill-opacity="0.55"'
        yield rectangle(x, layout.top, BAND_PX, high, look)
        yield _box(layout.middle, BOX_PX, dashed=True)
    for x in layout.lanes.values():
        yield _box(x, BOX_PX)
        start = layout.top
        for fold in layout.folds:
            yield line((x, start, x, fold - 4), f'stroke="{SOFT.light}"')
            for y in (fold - 4, fold + 4):
                ends = x - SLASH_PX, y + 2.5, x + SLASH_PX, y - 2.5
                yield line(ends, f'stroke="{SOFT.light}"')
            start = fold + 4
        yield line((x, start, x, bottom), f'stroke="{SOFT.light}"')


def _box(x: float, wide: float, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="3 3"' if dashed else ""
    look = f'rx="5" fill="none" stroke="{SOFT.light}"{dashes}'
    return rectangle(x - wide / 2, PAD_PX - 4, wide, HEAD_PX, look)


def _leaders(layout: Layout) -> Iterator[str]:
    for start, end, y in layout.leaders:
        yield line((start, y, end, y), f'stroke="{SOFT.light}" stroke-dasharray="{LEADER_DASHES}"')
        yield _dot(end, y, 2.2, SOFT.light)


def _arrow(stroke: Stroke) -> Iterator[str]:
    """Yield a packet's line, its arrowhead, or the cross where it was lost."""
    colour = SERIES[(stroke.rung.connection - 1) % len(SERIES)].light
    (x0, y0), (x1, y1) = stroke.points[-2:]
    long = math.hypot(x1 - x0, y1 - y0) or 1.0
    across, down = (x1 - x0) / long, (y1 - y0) / long
    points = list(stroke.points)
    if not stroke.lost:  # the line ends below its head, which would be blunt
        points[-1] = x1 - across * HEAD_LONG_PX / 2, y1 - down * HEAD_LONG_PX / 2
    dashes = f' stroke-dasharray="{MORE_DASHES}"' if stroke.rung.more else ""
    path = "M" + "L".join(f"{px(x)},{px(y)}" for x, y in points)
    yield (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" '
        f'stroke-linejoin="round"{dashes}/>'
    )
    if stroke.lost:
        for way in (1, -1):
            ends = x1 - CROSS_PX, y1 - way * CROSS_PX, x1 + CROSS_PX, y1 + way * CROSS_PX
            yield line(ends, f'stroke="{INK.light}" stroke-width="2.4"')
    else:
        back = x1 - across * HEAD_LONG_PX, y1 - down * HEAD_LONG_PX
        sides = (
            (back[0] - way * down * HEAD_WIDE_PX, back[1] + way * across * HEAD_WIDE_PX)
            for way in (1, -1)
        )
        corners = " ".join(f"{px(x)},{px(y)}" for x, y in ((x1, y1), *sides))
        yield f'<polygon points="{corners}" fill="{colour}"/>'
    if stroke.knot is not None:
        yield _dot(*stroke.knot, KNOT_PX, INK.light)


def _dot(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{px(x)}" cy="{px(y)}" r="{px(radius)}" fill="{colour}"/>'


def _words(text: Text) -> str:
    turned = f' transform="rotate({px(text.degrees)},{px(text.x)},{px(text.y)})"'
    attributes = turned if text.degrees else ""
    if text.kind in ("label", "rule", "fold"):  # a white outline keeps lines off the letters
        attributes += f' paint-order="stroke" stroke="{PAPER.light}" stroke-width="3"'
    if text.kind in ("rule", "fold"):
        attributes += ' font-style="italic"'
    return write(text.x, text.y, text.text, anchor="" if text.anchor == "start" else text.anchor,
                 fill=SOFT.light if text.kind in ("time", "address", "fold") else "",
                 weight="bold" if text.bold else "", more=attributes)  # fmt: skip
