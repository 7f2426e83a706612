"""Transactions of one client in a closed loop: section 6.2 of the TCP Fast Open paper.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011.
"""

from __future__ import annotations

import pandas as pd

from analysis.records.results import Results
from analysis.report.publications import Grid, Rebuilt, StatedCheck
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    median_columns,
    proven_served,
    published_for,
    split_loads,
    titled,
)
from wings.papers.reproductions.view import MeasuredColumn, View

ARM, RATE = "Fast Open", "transactions_per_s"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return the table of both rates, and the checks of what is stated."""
    tables: list[Grid] = []
    checks: list[StatedCheck] = []
    for part, frame in split_loads(proven_served(results), ("tfo",)):
        loads = published_for(frame, reference).rename(columns={"replies_per_s": RATE})
        cells = median_columns(loads, ["tfo"], [RATE, "server_cpu_pct"])
        if not cells.empty:
            tables.append(_grid(cells, part))
        checks += check_claims(reference, {"cells": cells, "gains": with_gains(loads)}, part)
    title = "Transactions a second in a closed loop"
    return Rebuilt(title, tuple(tables), (), tuple(checks))


def with_gains(loads: pd.DataFrame) -> pd.DataFrame:
    """Return the median ``gain`` by Fast Open over all runs that have both arms, in percent.

    One row, none without such a run; the ends of its interval are ``gain_low`` and ``gain_high``.
    """
    off, on = (loads[loads["tfo"] == arm].set_index(list(RUN))[RATE].rename(name)
               for arm, name in ((False, "off"), (True, "on")))  # fmt: skip
    pairs = pd.concat([off, on], axis="columns", join="inner").reset_index()
    gains = pairs.assign(gain=(pairs["on"] / pairs["off"] - 1) * 100.0, all="all")
    return median_columns(gains, ["all"], ["gain"])


def _grid(cells: pd.DataFrame, part: str) -> Grid:
    words = cells["tfo"].map({True: "on", False: "off"})
    return grid_of(cells.assign(**{ARM: words, "cycle_us": 1e6 / cells[RATE]}),
                   titled("Section 6.2: transactions a second", part),
                   {ARM: ARM, RATE: "Transactions (1/s)|1", "cycle_us": "A transaction (\u00b5s)|1",
                    "server_cpu_pct": "Server's processor (%)|1"})  # fmt: skip


def _read(results: Results) -> pd.DataFrame:
    loads = proven_served(results).rename(columns={"replies_per_s": RATE})
    return loads.assign(**{ARM: loads["tfo"].map({True: "on", False: "off"})})


VIEW = View(
    "Section 6.2", _read, ARM, (),
    ((MeasuredColumn(RATE, "Transactions (1/s)"),),
     (MeasuredColumn("server_cpu_pct", "Server's processor (%)", "points", relative=False),)),
    ("tfo",)
)  # fmt: skip
