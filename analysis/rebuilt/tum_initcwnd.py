"""Transfer duration by initial window: Figures 2 and 3 of the TUM seminar paper.

Source: S. Scheibner, TCP Internals, TU Muenchen 2013, section 5.  The lines of the model are what
slow start alone predicts (`analysis.shortflow`).
"""

from __future__ import annotations

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.initcwnd_checks import check_durations
from analysis.rebuilt.rebuilt import Check, Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import (
    ladder,
    name_absent,
    named,
    plain,
    proven_loads,
    rounded,
    split_loads,
    titled,
)
from analysis.rebuilt.transfers import WINDOW, medians, predictions
from analysis.records.results import Results
from analysis.words import axis_value

AXES = ("page", "rtt_ms", WINDOW)
FIGURES = {200.0: "Figure 2", 40.0: "Figure 3"}


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return a table and a figure for each RTT, and the checks of the stated durations."""
    loads = proven_loads(results)
    model = predictions(results)
    absent = name_absent(results)
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[Check] = []
    for part, frame in split_loads(loads, AXES):
        theory = model[model["trial_id"].isin(frame["trial_id"])]
        for rtt_ms in reversed(ladder(frame["rtt_ms"])):
            one, line = (f[f["rtt_ms"] == rtt_ms] for f in (frame, theory))
            title = titled(f"{_place(rtt_ms)}: RTT {axis_value('rtt_ms', rtt_ms)}", part)
            tables.append(_grid(one, line, title, absent))
            figures.append(_figure(one, line, title, named(f"initcwnd-{rtt_ms:g}ms", part), absent))
        checks += check_durations(frame, theory, reference, part)
    if loads.empty:
        checks += check_durations(loads, model, reference, "")
    title = "Transfer duration by initial window"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def _grid(frame: pd.DataFrame, theory: pd.DataFrame, title: str, absent: str) -> Grid:
    """One row for each window: of each file the duration, the model's, and ours minus it."""
    ours, model = medians(frame, "plt_s"), medians(theory, "model_s")
    files = list(ours.columns)
    columns = [
        name
        for page in files
        for name in (f"{page} (s)", f"{page}, model (s)", f"{page}, ours minus model (%)")
    ]
    rows = []
    for window in ours.index:
        row: list[float | int | None] = [int(window)]
        for page in files:
            known = model.at[window, page] if page in model and window in model.index else None
            mine, theirs = plain(ours.at[window, page]), plain(known)
            gap = (mine / theirs - 1) * 100 if mine and theirs else None
            row += [rounded(mine, 3), rounded(theirs, 3), rounded(gap, 2)]
        rows.append(tuple(row))
    return Grid(title, ("Initial window (segments)", *columns), tuple(rows), absent)


def _figure(
    frame: pd.DataFrame, theory: pd.DataFrame, title: str, name: str, absent: str
) -> Figure:
    points, line = (
        f.rename(columns={column: "duration_s", "page": "file"})
        for f, column in ((frame, "plt_s"), (theory, "model_s"))
    )
    chart = plot.lines(
        points.sort_values(WINDOW, kind="stable"),
        x=WINDOW,
        y="duration_s",
        color="file",
        model=line if not line.empty else None,
    )
    caption = (
        "Duration of the transfer of one file over a new connection, handshake included, by the "
        "server's initial window. Dashed: what slow start predicts in closed form. " + absent
    )
    return Figure(name, title, chart, caption.strip())


def _place(rtt_ms: float) -> str:
    return FIGURES.get(rtt_ms, "As Figures 2 and 3")
