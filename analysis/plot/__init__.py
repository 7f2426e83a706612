"""Figures from data frames: charts that a notebook can turn about, and SVG that a page can hold.

Every function takes a long frame (one row for each value, units in the column names) and returns
an Altair chart; ``to_svg`` makes it static.  Importing this package gives all charts the theme.
"""

from analysis.plot.cdf import cdf
from analysis.plot.heatmap import heatmap
from analysis.plot.intervals import intervals
from analysis.plot.lines import lines
from analysis.plot.paired import paired
from analysis.plot.svg import save, to_svg, unchecked
from analysis.plot.theme import Plot, style_sheet

__all__ = [
    "Plot",
    "cdf",
    "heatmap",
    "intervals",
    "lines",
    "paired",
    "save",
    "style_sheet",
    "to_svg",
    "unchecked",
]
