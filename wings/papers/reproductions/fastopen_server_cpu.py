"""The server's processor at constant rates of requests: Figure 6 of the TCP Fast Open paper.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, section 6.2.
"""

from __future__ import annotations

import pandas as pd

from analysis import plot
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.prices import note_prices
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    median_columns,
    named,
    proven_served,
    published_for,
    split_loads,
    titled,
)
from wings.papers.reproductions.view import MeasuredColumn, View

RATE, CPU = "rate_per_s", "server_cpu_pct"
AXES = (RATE, "tfo")
ARM = "Fast Open"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return the table and the figure of processor load over rate, and the checks of the text."""
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[StatedCheck] = []
    note = note_prices(results)
    for part, loads in split_loads(_read(results), AXES):
        cells = medians(published_for(loads, reference))
        if not cells.empty:
            tables.append(_grid(cells, part, note))
            figures.append(_figure(loads, part, note))
        checks += check_claims(reference, {"cells": cells}, part)
    title = "The server's processor with and without Fast Open"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def medians(loads: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each rate at which both arms were measured.

    Columns: ``figure``, ``off_pct`` and ``on_pct``, and ``more_points``: by how many percent of the
    processor it is busier with Fast Open; each with the ends of its interval (`median_columns`).
    """
    run = [RATE, *RUN]
    off, on = (loads[loads["tfo"] == arm].set_index(run)[CPU].rename(name)
               for arm, name in ((False, "off_pct"), (True, "on_pct")))  # fmt: skip
    pairs = pd.concat([off, on], axis="columns", join="inner").reset_index().sort_values(RATE)
    pairs = pairs.assign(more_points=pairs["on_pct"] - pairs["off_pct"])
    cells = median_columns(pairs, [RATE], ["off_pct", "on_pct", "more_points"])
    return cells.assign(figure="Figure 6")


def _read(results: Results) -> pd.DataFrame:
    loads = proven_served(results)
    return loads.assign(**{ARM: loads["tfo"].map({True: "on", False: "off"})})


def _grid(cells: pd.DataFrame, part: str, note: str) -> Grid:
    share = cells["more_points"] / cells["off_pct"] * 100.0
    return grid_of(cells.assign(share=share),
                   titled("Figure 6: load of the server's processor", part),
                   {RATE: "Requests (1/s)", "off_pct": "Without Fast Open (%)|2",
                    "on_pct": "With Fast Open (%)|2", "more_points": "Difference (points)|2",
                    "share": "Difference (%)|1"}, note)  # fmt: skip


def _figure(loads: pd.DataFrame, part: str, note: str) -> Figure:
    return Figure(
        named("server-cpu", part),
        titled("Figure 6: load of the server's processor", part),
        plot.lines(loads.sort_values(RATE), x=RATE, y=CPU, color=ARM),
        "How busy the server's processor is at constant rates of requests for a page of 5 KB, "
        f"each on a connection of its own. {note}".strip(),
    )


VIEW = View("Figure 6", _read, ARM, (RATE,),
            ((MeasuredColumn(CPU, "Server's processor (%)", "points", 2, relative=False),),),
            AXES)  # fmt: skip
