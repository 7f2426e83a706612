"""Figures from frames or plain rows: still in a page, to turn about in a notebook.

Every function takes long data (one row for each value, units in the column names) and returns a
`Plot`, which a notebook shows as it is; ``to_svg`` draws it for a page.
"""

from analysis.plot.bars import intervals, paired, stacked
from analysis.plot.cdf import cdf
from analysis.plot.chart import Plot, to_svg
from analysis.plot.heatmap import heatmap
from analysis.plot.lines import lines
from analysis.plot.theme import style_sheet

__all__ = ["Plot", "cdf", "heatmap", "intervals", "lines", "paired", "stacked", "style_sheet",
           "to_svg"]  # fmt: skip
