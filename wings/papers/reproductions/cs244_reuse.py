"""The CS244'15 reproduction of Fast Open: page load time by resources per connection.

Source: S. Srinivasan and R. Verma, CS244'15 - TCP Fast Open, 2015.  Its tables are pictures, and
its ``table_results.csv`` is known to hold results and relative improvements only: the columns here
are ours.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence

import pandas as pd

from analysis import plot
from analysis.records.cells import cells_of, varying_axes
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt
from analysis.tables.rows import trimmed
from analysis.tables.table import PAIR_AXIS, Pair, make_table
from analysis.words import axis_value, axis_word, count
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import ends_of, grid_of, plain

FILE = "table_results.csv"
COLUMNS = ("resources_per_connection", "page", "rtt_ms", "runs",
           "plt_without_tfo_s", "plt_with_tfo_s", "improvement_pct")  # fmt: skip
ORDER = (2.0, 1.0, 100.0)
"""In which the reproduction shows its tables; other numbers follow."""
GRID = {"page_part": "Page", "rtt_ms": "RTT (ms)", "runs": "Runs",
        "off_s": "PLT without Fast Open (s)|3", "on_s": "PLT with Fast Open (s)|3",
        "improvement_pct": "Improvement (%)|1", "opened": "Connections"}  # fmt: skip
KEY = "Resources per connection"
REUSE = "requests_per_connection"
OWN_AXES = ("page", "rtt_ms", REUSE)
UNLIMITED = float("inf")


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return a table for each number of resources per connection, the CSV and the figures."""
    cells = cells_of(results)
    further_axes = [n for n in varying_axes(cells) if n not in (*OWN_AXES, PAIR_AXIS)]
    rows = average_pairs(make_table(cells, reference).pairs, further_axes)
    order = [*ORDER, *sorted(set(rows["reuse"]) - set(ORDER))]
    rows = rows.sort_values("reuse", key=lambda reuse: reuse.map(order.index), kind="stable")
    return Rebuilt("The CS244'15 reproduction: resources per connection",
                   tables=tuple(_grid(group) for _, group in rows.groupby("reuse", sort=False)),
                   figures=_figures(rows), checks=tuple(check_claims(reference, {"cells": rows})),
                   files={FILE: render_csv(rows)})  # fmt: skip


def average_pairs(pairs: Sequence[Pair], further_axes: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row for each of ``pairs``: mean load times over the runs that both arms have.

    Columns: the knobs of OWN_AXES; ``part``, the values of ``further_axes``, swept knobs that the
    reproduction does not know; ``page_part`` and ``name``, the page and the row with it;
    ``resources`` and ``reuse``, REUSE as a word and as a number; ``runs``, ``off_s``, ``on_s`` and
    ``improvement_pct``, NaN where not measured; ``improvement_pct_low`` and ``_high``, the ends of
    its interval; ``opened``, the median number of connections of all proven loads;
    and ``requests_per_connection_most``, the most requests on one of them.
    """
    rows = []
    for pair in pairs:
        axes = {name: pair.axes[name] for name in OWN_AXES}
        reuse = UNLIMITED if axes[REUSE] is None else float(axes[REUSE])
        part = ", ".join(f"{axis_word(n)} {axis_value(n, pair.axes.get(n))}" for n in further_axes)
        known = (axis_value("page", axes["page"]), axis_value("rtt_ms", axes["rtt_ms"]), part)
        proven = [record for _, cell in pair.arms if cell for record in cell.proven]
        opened = [record.proof.connections for record in proven if record.proof]
        served = [record.replay.most_per_connection for record in proven if record.replay]
        off_s, on_s = _means_s(pair)
        low, high = ends_of(pair.shift.percent if pair.shift else None)
        rows.append(
            {**axes, "part": part, "page_part": ", ".join(filter(None, (str(axes["page"]), part))),
             "name": ", ".join(filter(None, known)),
             "resources": "unlimited" if reuse == UNLIMITED else f"{reuse:g}", "reuse": reuse,
             "runs": len(pair.seeds), "off_s": off_s, "on_s": on_s,
             "improvement_pct": (off_s - on_s) / off_s * 100.0 if off_s and on_s else None,
             "improvement_pct_low": low, "improvement_pct_high": high,
             "opened": statistics.median(opened) if opened else None,
             "requests_per_connection_most": max((most for most in served if most), default=None)}
        )  # fmt: skip
    names = (*OWN_AXES, "part", "page_part", "name", "resources", "reuse", "runs", "off_s", "on_s",
             "improvement_pct", "improvement_pct_low", "improvement_pct_high", "opened",
             "requests_per_connection_most")  # fmt: skip
    return pd.DataFrame(rows, columns=list(names))


def _means_s(pair: Pair) -> list[float | None]:
    means: list[float | None] = []
    for _, cell in pair.arms:
        times = cell.by_seed if cell else {}
        # Without the other arm there is a mean, but no improvement.
        chosen = [times[run] for run in sorted(pair.seeds or times)]
        means.append(statistics.fmean(chosen) / 1000.0 if chosen else None)
    return means


def render_csv(rows: pd.DataFrame) -> str:
    """Return ``table_results.csv``: one line for each row, with all knobs swept in COLUMNS.

    Other swept knobs are named in a last column, which is there only if there are any.
    """
    with_part = bool(rows["part"].any())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(["condition"] if with_part else [])])
    for row in rows.to_dict("records"):
        numbers = ((plain(row[name]), n) for name, n in
                   (("off_s", 6), ("on_s", 6), ("improvement_pct", 4)))  # fmt: skip
        writer.writerow(
            [row["resources"], row["page"], trimmed(float(row["rtt_ms"]), 3), row["runs"],
             *("" if value is None else trimmed(value, places) for value, places in numbers),
             *([row["part"]] if with_part else [])]
        )  # fmt: skip
    return text.getvalue()


def _grid(rows: pd.DataFrame) -> Grid:
    reuse = rows["reuse"].iloc[0]
    served = "any number of resources" if reuse == UNLIMITED else count(int(reuse), "resource")
    title = f"Results with {served} per connection"
    return grid_of(rows, title, GRID, "Means over the runs that both arms have.")


def _figures(rows: pd.DataFrame) -> tuple[Figure, ...]:
    points = rows.drop(columns="page").rename(columns={"resources": KEY, "page_part": "page"})
    points = points.dropna(subset="improvement_pct").astype({"improvement_pct": float})
    if points.empty:
        return ()
    chart = plot.lines(points, x="rtt_ms", y="improvement_pct", color=KEY, facet="page")
    caption = (
        "How much sooner each page loads with Fast Open, in percent of the mean time without, "
        "over the round-trip time, by the number of resources that a connection serves."
    )
    title = "Improvement by resources per connection"
    return (Figure("cs244-improvement", title, chart, caption),)
