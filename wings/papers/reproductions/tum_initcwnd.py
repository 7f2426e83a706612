"""Transfer duration by initial window: Figures 2 and 3 of the TUM seminar paper.

Source: S. Scheibner, TCP Internals, TU Muenchen 2013, section 5.  The lines of the model are what
slow start alone predicts (`analysis.shortflow`).
"""

from __future__ import annotations

import pandas as pd

from analysis import plot
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from analysis.shortflow import predict_fetch_ms
from analysis.words import axis_value
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, PageLoad, Record
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    ladder,
    median_columns,
    named,
    proven_loads,
    proven_records,
    published_for,
    split_loads,
    titled,
)

WINDOW = "initcwnd_segments"
AXES = ("page", "rtt_ms", WINDOW)
FIGURES = {200.0: "Figure 2", 40.0: "Figure 3"}
BASE = 4
"""The window against which gains are stated (RFC 5681; section 5 of the seminar paper)."""
REQUEST_BYTES = 400
"""A browser's or our client's GET; at 10 Mbit/s 100 bytes more or less are 0.08 ms."""


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return a table and a figure for each RTT, and the checks of the stated durations."""
    loads = with_model(results)
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[StatedCheck] = []
    for part, frame in split_loads(loads, AXES):
        for rtt_ms in reversed(ladder(frame["rtt_ms"])):
            at_rtt = frame[frame["rtt_ms"] == rtt_ms]
            place = FIGURES.get(rtt_ms, "As Figures 2 and 3")
            title = titled(f"{place}: RTT {axis_value('rtt_ms', rtt_ms)}", part)
            tables.append(_grid(at_rtt, title))
            figures.append(_figure(at_rtt, title, named(f"initcwnd-{rtt_ms:g}ms", part)))
        measured = {
            "cells": durations(published_for(frame, reference)),
            "loads": frame.sort_values("model_gap_pct", key=abs, ascending=False, kind="stable"),
        }
        checks += check_claims(reference, measured, part)
    title = "Transfer duration by initial window"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def with_model(results: Results) -> pd.DataFrame:
    """Return the proven loads with ``model_s``, NaN where the model does not hold.

    ``model_gap_pct`` is how much longer ours takes, in percent of ``model_s``.
    """
    times = {record.trial_id: _predict_s(record) for record in proven_records(results)}
    loads = proven_loads(results)
    loads = loads.assign(model_s=loads["trial_id"].map(times).astype(float))
    return loads.assign(model_gap_pct=(loads["plt_s"] / loads["model_s"] - 1.0) * 100.0)


def durations(loads: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each page, RTT and window: medians, in s.

    Columns: ``duration``, ``base_s`` (with the window BASE), and ``window_gain``, how much sooner
    it is than that of the same run, in percent; each with the ends of its interval
    (`median_columns`).
    """
    run = ["page", "rtt_ms", *RUN]
    base = loads[loads[WINDOW] == BASE].set_index(run)["plt_s"].rename("base_s")
    known = loads.rename(columns={"plt_s": "duration"}).join(base, on=run)
    known = known.astype({"duration": float, "base_s": float})
    known = known.assign(window_gain=(1 - known["duration"] / known["base_s"]) * 100.0)
    return median_columns(known, AXES, ["duration", "base_s", "window_gain"])


def _predict_s(record: Record) -> float | None:
    """Return the time that slow start predicts for a load of one object, if the model holds."""
    condition, load = record.trial.condition_as(Condition), record.measured_as(PageLoad)
    requests = load.requests if load else ()
    if len(requests) != 1 or not requests[0].transfer_bytes or condition.dns != "hosts":
        return None
    if condition.draws:  # each seed has a number of its own
        return None
    try:
        fetch_ms = predict_fetch_ms(
            condition.link, condition.tcp, REQUEST_BYTES, requests[0].transfer_bytes
        )
    except ConfigurationError:
        return None
    return (fetch_ms + condition.server_think_ms) / 1000.0


def _grid(frame: pd.DataFrame, title: str) -> Grid:
    """Return one row for each window: the duration of each file, the model's, and the gap."""
    medians = frame.groupby([WINDOW, "page"])[["plt_s", "model_s"]].median()
    medians["gap_pct"] = (medians["plt_s"] / medians["model_s"] - 1) * 100
    table: pd.DataFrame = medians.unstack()  # type: ignore[assignment]
    heads = {"plt_s": " (s)|3", "model_s": ", model (s)|3", "gap_pct": ", ours minus model (%)|2"}
    files = frame.groupby("page")["plt_s"].median().sort_values(kind="stable").index
    columns = {f"{name} {page}": f"{page}{heads[name]}" for page in files for name in heads}
    table.columns = pd.Index([" ".join(names) for names in table.columns])
    return grid_of(table.reset_index(), title, {WINDOW: "Initial window (segments)", **columns})


def _figure(frame: pd.DataFrame, title: str, name: str) -> Figure:
    points, line = (
        frame.rename(columns={column: "duration_s", "page": "file"}).dropna(subset="duration_s")
        for column in ("plt_s", "model_s")
    )
    chart = plot.lines(points.sort_values(WINDOW, kind="stable"), x=WINDOW, y="duration_s",
                       color="file", model=None if line.empty else line)  # fmt: skip
    caption = (
        "Duration of the transfer of one file over a new connection, handshake included, by the "
        "server's initial window. Dashed: what slow start predicts in closed form."
    )
    return Figure(name, title, chart, caption)
