"""Two results folders held against each other: same, different, or inconclusive; never pooled.

folders       read, refuse what is unequal, judge each cell
environments  what differs between two environments, and whether it is under test
matching      which cell is which
outcomes      what became of the trials
exact         the virtual kernel: to the bit
estimated     the host's kernel: significance, twosample
captures      the first packet that differs (testbed.wire.difference)
text          markdown, junit, document: one comparison in four forms (phrases, written)
"""

from analysis.regression.compare.comparison import (
    CellFinding,
    CompareOptions,
    Comparison,
    Part,
    Side,
    Verdict,
)
from analysis.regression.compare.folders import compare_results
from analysis.regression.compare.text import render_text
from analysis.regression.compare.written import describe_comparison, write_files

__all__ = [
    "CellFinding",
    "CompareOptions",
    "Comparison",
    "Part",
    "Side",
    "Verdict",
    "compare_results",
    "describe_comparison",
    "render_text",
    "write_files",
]
