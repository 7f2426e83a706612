"""Table 1 of the TCP Fast Open paper: row by row agreement, and the improvement over the RTT.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, section 6.1.  The rows themselves are
`analysis.tables.table`'s, and stand in every report.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.rebuilt import Figure, Rebuilt
from analysis.rebuilt.sweep import name_absent
from analysis.rebuilt.table1_checks import check_table, name_row
from analysis.records.cells import cells_of, varying_axes
from analysis.records.results import Results
from analysis.tables.table import PAIR_AXIS, Pair, make_table

OURS, PAPER = "ours", "the paper"


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return the checks of all published rows and the figure of ours beside theirs."""
    cells = cells_of(results)
    pairs = make_table(cells, reference).pairs
    others = [n for n in varying_axes(cells) if n not in ("page", "rtt_ms", PAIR_AXIS)]
    return Rebuilt(
        "Table 1 of the TCP Fast Open paper, row by row",
        figures=_figures(pairs, others, name_absent(results)),
        checks=tuple(check_table(pairs, others, reference)),
    )


def _figures(pairs: Sequence[Pair], others: Sequence[str], absent: str) -> tuple[Figure, ...]:
    rows = []
    for pair in pairs:
        page = name_row(pair.axes, ["page", *others])
        common = {"page": page, "rtt_ms": float(pair.axes["rtt_ms"])}
        if pair.improvement_pct:
            # The figure draws the median and the range of these, which are those of all seeds.
            gain = pair.improvement_pct
            ends = (gain.low, gain.median, gain.high)
            rows += [{**common, "source": OURS, "improvement_pct": one} for one in ends]
        if pair.paper:
            gain_pct = pair.paper.improvement_pct
            rows.append({**common, "source": PAPER, "improvement_pct": gain_pct})
    if not any(row["source"] == OURS for row in rows):
        return ()
    chart = plot.lines(
        pd.DataFrame(rows), x="rtt_ms", y="improvement_pct", color="source", facet="page"
    )
    caption = (
        "How much sooner each page loads with Fast Open, in percent of the time without, over the "
        "round-trip time: ours (the median of all seeds, and their range if there are several) "
        f"and the published numbers. {absent}"
    )
    title = "Improvement of page load time by Fast Open"
    return (Figure("table1-improvement", title, chart, caption.strip()),)
