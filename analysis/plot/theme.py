"""Theme of all figures: sizes, type and colours, each colour with its name on a page.

A chart holds the light colours.  On a page each becomes a custom property, so that one drawing
serves light and dark.  The series differ in lightness as well as in hue and keep away from red
beside green, and each has a contrast of 3:1 against the ground (WCAG 2.2, 1.4.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What the layout is measured with, and fonts of the same widths where a page has them.
MEASURED_FONT = "Liberation Sans"
FONTS = "Arial, 'Liberation Sans', Helvetica, sans-serif"
TEXT_PX = 12
TITLE_PX = 14
PANEL_WIDTH = 400
PANEL_HEIGHT = 240
# Two panels abreast are about as wide as a single one.
FACET_WIDTH = 205
FACET_HEIGHT = 165
FACET_COLUMNS = 2
# Smaller, and the smallest text could not be read: the figure scrolls instead.
LEAST_SCALE = 0.8
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "arrow")


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour of the theme: its custom property, and its value on a light and a dark ground."""

    name: str
    light: str
    dark: str


PAPER = Colour("paper", "#ffffff", "#151b23")
INK = Colour("ink", "#17202b", "#e6ebf1")
SOFT = Colour("soft", "#54606e", "#a3afbd")
LINE = Colour("line", "#d9dfe7", "#303a46")
MORE = Colour("heat-more", "#2166ad", "#4f97e6")
LESS = Colour("heat-less", "#c2570c", "#e8884a")
SERIES = (Colour("series-1", "#0b62a8", "#5ba6ee"), Colour("series-2", "#cf5a06", "#f08c42"),
          Colour("series-3", "#178a72", "#3fc7a8"), Colour("series-4", "#a3478f", "#d98ac6"),
          Colour("series-5", "#9a7400", "#d8b13c"), Colour("series-6", "#3d4754", "#b9c4d0"),
          Colour("series-7", "#4690c9", "#9bd0f5"),
          Colour("series-8", "#8c2f1f", "#e5705c"))  # fmt: skip
FURTHER = (Colour("series-9", "#5f8f1a", "#a5cf5a"), Colour("series-10", "#8a94a0", "#74808d"))
"""For parts of a whole, which have no pattern or shape beside their colours."""
GOOD = Colour("good", "#14692f", "#7fdc9a")
BAD = Colour("bad", "#a01c2b", "#ff9aa5")
WARN = Colour("warn", "#7a4b00", "#f1c376")
COLOURS = (PAPER, INK, SOFT, LINE, MORE, LESS, *SERIES, *FURTHER)
VERDICTS = (GOOD, BAD, WARN)
"""As in ``report.css``, which is on every page that shows verdicts."""

_TEXT: Mapping[str, Any] = {"labelColor": INK.light, "labelFontSize": TEXT_PX,
                            "titleColor": SOFT.light, "titleFontSize": TEXT_PX,
                            "titleFontWeight": "normal"}  # fmt: skip
CONFIG: Mapping[str, Any] = {
    "aria": False,  # the drawing as a whole is named; see analysis.plot.svg
    "background": PAPER.light,
    "font": MEASURED_FONT,
    # A page without these fonts shows wider ones: labels at the edge need some air.
    "padding": {"left": 14, "right": 14, "top": 4, "bottom": 4},
    "view": {"stroke": None, "continuousWidth": PANEL_WIDTH, "continuousHeight": PANEL_HEIGHT,
             "discreteWidth": PANEL_WIDTH},
    "title": {"anchor": "start", "frame": "group", "color": INK.light, "fontSize": TITLE_PX,
              "subtitleColor": SOFT.light, "subtitleFontSize": TEXT_PX, "offset": 10},
    "axis": {**_TEXT, "domainColor": SOFT.light, "gridColor": LINE.light, "tickColor": SOFT.light,
             "labelLimit": 230, "titlePadding": 8},
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "header": {**_TEXT, "labelFontWeight": "bold", "title": None, "labelAnchor": "start"},
    "legend": {**_TEXT, "orient": "top", "symbolStrokeWidth": 2, "symbolSize": 70,
               "labelLimit": 260, "columnPadding": 14, "offset": 8},
    "line": {"strokeWidth": 2, "strokeJoin": "round"},
    "point": {"size": 38, "filled": True, "opacity": 1},
    "rule": {"color": INK.light, "strokeWidth": 1.5},
    "text": {"color": INK.light, "fontSize": TEXT_PX},
    "range": {"category": [colour.light for colour in SERIES], "symbol": list(SHAPES)},
}  # fmt: skip


def style_sheet() -> str:
    """Return the custom properties of all colours, light and dark, and what ``.plot`` needs (CSS).

    Put a figure into ``<div class="plot">``: on a narrow screen it scrolls sideways before its
    text gets too small to read.
    """
    light, dark = (
        " ".join(f"--{colour.name}: {getattr(colour, ground)};" for colour in COLOURS)
        for ground in ("light", "dark")
    )
    return (
        f":root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        ".plot { overflow-x: auto; }\n"
        ".plot > svg { display: block; overflow: visible; }\n"
    )
