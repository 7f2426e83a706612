"""PRECONNECT beside and with Fast Open: what each saves of a load, and what stays idle.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, section 8.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from analysis.records.results import Results
from analysis.report.publications import Grid, Rebuilt, StatedCheck
from analysis.tables.table import PAIR_AXIS
from analysis.words import axis_value
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    median_columns,
    proven_loads,
    published_for,
    split_loads,
    titled,
)

HIT = "preconnect_pct"
PLACE, MECHANISM = ("page", "rtt_ms"), (HIT, PAIR_AXIS)
ALL_RIGHT = 100.0
NUMBERS = ("plt_s", "base_s", "idle_connections")


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return what each mechanism saves of each row, and the checks of what is stated."""
    tables: list[Grid] = []
    checks: list[StatedCheck] = []
    loads = proven_loads(results)
    for part, frame in split_loads(loads, (*PLACE, *MECHANISM)):
        rows = gains(frame)
        tables.append(grid_of(rows, titled("PRECONNECT and Fast Open", part), {
            "page": "Page", "rtt_ms": "RTT (ms)", HIT: "Right guesses (%)",
            "fast_open": "Fast Open", "plt_s": "Load (s)|3", "gain_pct": "Saved (%)|1",
            "idle_connections": "Idle connections|0",
        }))  # fmt: skip
        measured = gains(published_for(frame, reference))
        checks += check_claims(reference, {"rows": measured, "mean": mean_gains(measured)}, part)
    return Rebuilt(reference.title, tuple(tables), checks=tuple(checks))


def gains(loads: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each page, RTT and mechanism: medians of its loads.

    ``gain_pct`` is how much shorter a load is than that of the same run with neither mechanism,
    ``idle_of_right`` is what stays idle of right guesses alone.
    """
    run = [*PLACE, *RUN]
    neither = loads[loads[HIT].isna() & ~loads[PAIR_AXIS].astype(bool)]
    known = loads.join(neither.set_index(run)["plt_s"].rename("base_s"), on=run)
    idle = known.get("idle_connections", math.nan)
    known = known.assign(idle_connections=idle).astype(dict.fromkeys(NUMBERS, float))
    known = known.assign(gain_pct=(1 - known["plt_s"] / known["base_s"]) * 100.0)
    rows = median_columns(known, [*PLACE, *MECHANISM], ["plt_s", "gain_pct", "idle_connections"])
    right = rows[rows[HIT] == ALL_RIGHT].set_index([*PLACE, PAIR_AXIS])["idle_connections"]
    rows = rows.join(right.rename("idle_of_right"), on=[*PLACE, PAIR_AXIS])
    named = [", ".join(axis_value(name, row[name]) for name in PLACE) for _, row in rows.iterrows()]
    on = [axis_value(PAIR_AXIS, bool(each)) for each in rows[PAIR_AXIS]]
    return rows.assign(name=named, fast_open=on)


def mean_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each mechanism: the means over pages and RTTs.

    ``fast_open_pct`` is that of Fast Open alone.
    """
    columns = ["gain_pct", "gain_pct_low", "gain_pct_high"]
    groups: Any = rows.dropna(subset=["gain_pct"]).groupby(list(MECHANISM), dropna=False)
    means: pd.DataFrame = groups[columns].mean().reset_index()
    alone = means[means[HIT].isna() & means[PAIR_AXIS].astype(bool)]["gain_pct"]
    return means.assign(fast_open_pct=alone.iloc[0] if len(alone) else float("nan"))
