"""Table 1 of the TCP Fast Open paper: row by row agreement, and the improvement over the RTT.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, section 6.1.  The rows themselves are
`analysis.tables.table`'s, and every report has them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis import plot
from analysis.records.cells import Axes, Spread, cells_of, varying_axes
from analysis.records.results import Results
from analysis.report.publications import Figure, Rebuilt
from analysis.stats.shift import estimate_paired_shift
from analysis.tables.table import PAIR_AXIS, Pair, Published, make_table
from analysis.words import axis_name, axis_value, number
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import ends_of

OURS, PAPER = "ours", "the paper"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return the checks of all published rows and the figure of ours beside theirs."""
    cells = cells_of(results)
    pairs = make_table(cells, reference).pairs
    further_axes = [n for n in varying_axes(cells) if n not in ("page", "rtt_ms", PAIR_AXIS)]
    return Rebuilt(
        "Table 1 of the TCP Fast Open paper, row by row",
        figures=_figures(pairs, further_axes),
        checks=tuple(check_claims(reference, measured(pairs, further_axes, reference))),
    )


def measured(
    pairs: Sequence[Pair], further_axes: Sequence[str], reference: Reference
) -> dict[str, pd.DataFrame]:
    """Return the tables that the claims are about; ``further_axes`` are other swept knobs.

    ``rows``: ours beside each published row.  ``mean``: the mean over the rows that have both,
    if there are at least two.  ``arms``: the standard deviation of the loads of each cell in
    percent of its mean, if any cell has two loads.
    """
    published = [(pair, pair.paper) for pair in pairs if pair.paper]
    rows = pd.DataFrame([_row(pair, paper, further_axes, reference) for pair, paper in published])
    arms = [{**{name: pair.axes[name] for name in ("page", "rtt_ms")},
             "name": f"{name_row(pair.axes, ['page', 'rtt_ms', *further_axes])}, {arm}",
             "plt_deviation": cell.deviation_pct} for pair, _ in published
            for arm, cell in pair.arms if cell and cell.deviation_pct is not None]  # fmt: skip
    rows["most_of_others"] = [_most_of_others(row, rows) for _, row in rows.iterrows()]
    tables = {"rows": rows, **({"arms": pd.DataFrame(arms)} if arms else {})}
    paired = rows.dropna(subset=["improvement_pct"]) if published else rows
    if len(paired) > 1:
        low, high = _mean_ends([pair for pair, _ in published])
        means = {"improvement_mean": paired["improvement_pct"].mean(), "improvement_mean_low": low,
                 "improvement_mean_high": high, "paper_mean": paired["paper_pct"].mean(),
                 "rows": len(paired),
                 "below": (paired["improvement_pct"] < paired["paper_pct"]).sum()}  # fmt: skip
        tables["mean"] = pd.DataFrame([means])
    return tables


def _row(
    pair: Pair, paper: Published, further_axes: Sequence[str], reference: Reference
) -> dict[str, Any]:
    """Return ours beside the published row, in s and percent; NaN where not measured."""
    page, gain = str(pair.axes["page"]), pair.improvement_pct
    low, high = ends_of(pair.shift.percent if pair.shift else None)
    off, on = (
        arm.median / 1000 if arm else float("nan") for arm in (pair.spread_off, pair.spread_on)
    )
    improvement = gain.median if gain else float("nan")
    return {"name": name_row(pair.axes, ["page", "rtt_ms", *further_axes]),
            "series": name_row(pair.axes, ["page", *further_axes]),
            "setting": name_row(pair.axes, ["rtt_ms", *further_axes]),
            "published": reference.variants.get(page, page), "rtt_ms": float(pair.axes["rtt_ms"]),
            "paper_pct": paper.improvement_pct, "paper_off_s": paper.plt_off_s,
            "paper_on_s": paper.plt_on_s, "improvement_pct": improvement,
            "improvement_pct_low": low, "improvement_pct_high": high, "off_s": off, "on_s": on,
            "gain": _percent(gain) if gain else "",
            "missing": None if gain else pair.status.replace("_", " ")}  # fmt: skip


def _most_of_others(row: pd.Series[Any], rows: pd.DataFrame) -> float:
    """Return the largest improvement of other pages in the setting of ``row``, in percent."""
    others = (rows["setting"] == row["setting"]) & (rows["published"] != row["published"])
    return float(rows.loc[others, "improvement_pct"].max())


def name_row(axes: Axes, names: Sequence[str]) -> str:
    """Name a row: page and RTT by their values alone, other knobs with their names."""
    return ", ".join(axis_value(n, axes.get(n)) if n in ("page", "rtt_ms")
                     else f"{axis_name(n)} {axis_value(n, axes.get(n))}"
                     for n in names)  # fmt: skip


def _mean_ends(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the ends of the interval of the mean gain of ``pairs``, over the seeds of all."""
    seeds = set.intersection(*(set(pair.gain_by_seed) for pair in pairs))
    if len(seeds) < 2 or not any(pair.varies for pair in pairs):
        return ends_of(None)
    return ends_of(estimate_paired_shift(statistics.fmean(pair.gain_by_seed[seed] for pair in pairs)
                                         for seed in sorted(seeds)))  # fmt: skip


def _percent(spread: Spread) -> str:
    median = f"{number(spread.median, 1)} %"
    if spread.n == 1:
        return median
    ends = dict.fromkeys(number(end, 1) for end in (spread.low, spread.high))
    return f"{median} ({' to '.join(ends) + ', ' if len(ends) > 1 else ''}n = {spread.n})"


def _figures(pairs: Sequence[Pair], further_axes: Sequence[str]) -> tuple[Figure, ...]:
    rows = []
    for pair in pairs:
        page = name_row(pair.axes, ["page", *further_axes])
        common = {"page": page, "rtt_ms": float(pair.axes["rtt_ms"])}
        if pair.improvement_pct:
            # The figure draws the median and the range of these, which are those of all seeds.
            gain = pair.improvement_pct
            ends = (gain.low, gain.median, gain.high)
            rows += [{**common, "source": OURS, "improvement_pct": end_pct} for end_pct in ends]
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
        "and the published numbers."
    )
    title = "Improvement of page load time by Fast Open"
    return (Figure("table1-improvement", title, chart, caption),)
