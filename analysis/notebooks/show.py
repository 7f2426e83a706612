"""What a cell of a notebook ends with: results as frames, and rebuilt publications as tables.

Units are in the column names; frames are not rounded, and tables are as in a report.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from analysis import plot
from analysis.plot import rows as rows_of
from analysis.rebuilt import rebuild
from analysis.rebuilt.rebuilt import Grid, Rebuilt
from analysis.records.cells import Spread, cells_of, flatten, varying_axes
from analysis.records.results import Results, judge
from analysis.report.calibration import calibrations
from analysis.report.document import find_reference
from analysis.tables.table import ALWAYS_SHOWN, make_table
from analysis.words import MISSING, significant
from testbed.base.errors import ConfigurationError


def rebuilt(results: Results) -> Rebuilt:
    """The tables, figures and checks of the publication that the experiment refers to.

    Raises:
        ConfigurationError: it refers to none.
    """
    found = rebuild(results, find_reference(results))
    if found is None:
        raise ConfigurationError([f"{results.folder} rebuilds no publication"])
    return found


def figure(found: Rebuilt, name: str) -> plot.Plot:
    """The chart of the figure ``name``.

    Raises:
        ConfigurationError: there is none of that name; the message lists those that there are.
    """
    charts = {one.name: one.chart for one in found.figures}
    if name not in charts:
        known = ", ".join(charts) or "none"
        raise ConfigurationError([f"no figure {name!r} was rebuilt; there are: {known}"])
    return charts[name]


def grid(table: Grid) -> Styler:
    """A rebuilt table as it stands in a report."""
    return _styled(pd.DataFrame(table.rows, columns=list(table.columns)), table.title)


def checks(found: Rebuilt) -> Styler:
    """What the publication states beside ours, and why they differ where they do."""
    names = ("where", "what", "stated", "ours", "agreement", "why")
    rows = [[getattr(check, name) for name in names] for check in found.checks]
    return _styled(pd.DataFrame(rows, columns=[name.capitalize() for name in names]), found.title)


def differences(results: Results) -> Styler:
    """What differs from the publication that the experiment refers to, and why.

    Raises:
        ConfigurationError: it refers to none.
    """
    reference = find_reference(results)
    if reference is None:
        raise ConfigurationError([f"{results.folder} refers to no publication"])
    rows = [[one.what, one.why] for one in reference.differences]
    return _styled(pd.DataFrame(rows, columns=["Difference", "Why"]), reference.citation)


def savings(results: Results) -> pd.DataFrame:
    """What Fast Open saves, one row for each condition, as in Table 1 of its paper.

    Columns: the swept knobs; ``improvement_pct``, ``plt_off_s`` and ``plt_on_s``, medians over the
    ``n`` seeds that are proven both ways; the same with ``paper_``, NaN if it was not published.
    """
    cells = cells_of(results)
    table = make_table(cells, find_reference(results))
    swept = [name for name in table.axes if name in (*ALWAYS_SHOWN, *varying_axes(cells))]
    rows = [
        {
            **{name: pair.axes.get(name) for name in swept},
            "improvement_pct": _median(pair.improvement_pct),
            "paper_improvement_pct": pair.paper.improvement_pct if pair.paper else math.nan,
            "plt_off_s": _median(pair.plt_off, 1000.0),
            "plt_on_s": _median(pair.plt_on, 1000.0),
            "paper_plt_off_s": pair.paper.plt_off_s if pair.paper else math.nan,
            "paper_plt_on_s": pair.paper.plt_on_s if pair.paper else math.nan,
            "n": len(pair.seeds),
        }
        for pair in table.pairs
    ]
    return pd.DataFrame(rows)


def proofs(results: Results) -> pd.DataFrame:
    """What wire and counters say of each load that has a proof: one row each.

    Columns: the knobs, ``outcome``, then the counts of ``testbed.model.Proof``.
    """
    counts = ("connections", "syns", "syns_with_payload", "syn_payload_bytes", "cookie_requests",
              "syn_data_acked", "retransmits", "server_retransmits")  # fmt: skip
    records = [
        record for cell in cells_of(results) for record in cell.records if record.proof is not None
    ]
    rows = [
        {
            **flatten(record.trial.condition),
            "outcome": judge(record)[0],
            **{name: getattr(record.proof, name) for name in counts},
        }
        for record in records
    ]
    return pd.DataFrame(rows)


def calibration(results: Results) -> pd.DataFrame:
    """What the labs measured of themselves before each load, beside arithmetic.

    Columns: ``rtt_ms``, ``down_kbit``, ``up_kbit``, ``buffer_bytes`` of the link, ``property`` and
    its ``unit``, the medians ``theory`` and ``measured`` in it, ``worst_error_pct``, and
    ``tolerance_pct``.
    """
    names = ("rtt_ms", "down_kbit", "up_kbit", "buffer_bytes")
    rows = [
        {
            **{name: getattr(one.link, name) for name in names},
            "property": one.name,
            "unit": one.unit,
            "theory": one.theory.median,
            "measured": one.measured.median,
            "worst_error_pct": one.worst_error_pct,
            "tolerance_pct": one.tolerance_pct,
        }
        for one in calibrations(results.records)
    ]
    return pd.DataFrame(rows)


def _median(spread: Spread | None, divisor: float = 1.0) -> float:
    return spread.median / divisor if spread else math.nan


def _styled(frame: pd.DataFrame, title: str) -> Styler:
    """``frame`` without an index, with numbers as they are and text on the left."""
    return (
        frame.style.hide(axis="index")
        .set_caption(title)
        .format(_text, escape="html")
        .set_table_styles([{"selector": "th, td, caption", "props": "text-align: left"}])
    )


def _text(value: Any) -> str:
    found = rows_of.plain(value)
    return MISSING if found is None else found if isinstance(found, str) else significant(found)
