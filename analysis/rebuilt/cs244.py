"""The CS244'15 reproduction of Fast Open: page load time by resources per connection.

Source: S. Srinivasan and R. Verma, CS244'15 - TCP Fast Open, 2015.  Its tables are pictures, and
of its ``table_results.csv`` no more is known than that it holds results and relative improvements:
the columns here are ours.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.cs244_checks import check_reproduction
from analysis.rebuilt.cs244_rows import REUSE, Row, average_pair
from analysis.rebuilt.rebuilt import Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import name_absent, rounded
from analysis.records.cells import cells_of, varying_axes
from analysis.records.results import Results
from analysis.tables.rows import trimmed
from analysis.tables.table import PAIR_AXIS, make_table
from analysis.words import count

FILE = "table_results.csv"
COLUMNS = ("resources_per_connection", "page", "rtt_ms", "runs",
           "plt_without_tfo_s", "plt_with_tfo_s", "improvement_pct")  # fmt: skip
ORDER = (2, 1, 100)
"""In which the reproduction shows its tables; other numbers follow."""
KEY = "Resources per connection"
OWN_AXES = ("page", "rtt_ms", REUSE)


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return a table for each number of resources per connection, the CSV and the figures."""
    cells = cells_of(results)
    pairs = make_table(cells, reference).pairs
    others = [n for n in varying_axes(cells) if n not in (*OWN_AXES, PAIR_AXIS)]
    rows = sorted(
        (average_pair(pair, others) for pair in pairs), key=lambda row: _place(row.axes[REUSE])
    )
    absent = name_absent(results)
    numbers = dict.fromkeys(row.axes[REUSE] for row in rows)
    return Rebuilt(
        "The CS244'15 reproduction: resources per connection",
        tables=tuple(_grid([r for r in rows if r.axes[REUSE] == n], n, absent) for n in numbers),
        figures=_figures(rows, absent),
        checks=tuple(check_reproduction(rows, reference)),
        files={FILE: render_csv(rows)},
    )


def render_csv(rows: Sequence[Row]) -> str:
    """``table_results.csv``: one line for each row, with all knobs that were swept in COLUMNS.

    Other swept knobs are named in a last column, which is there only if there are any.
    """
    with_part = any(row.part for row in rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *(["condition"] if with_part else [])])
    for row in rows:
        times = (row.off_s, row.on_s)
        gain = row.improvement_pct
        writer.writerow(
            [
                row.resources,
                row.axes["page"],
                trimmed(float(row.axes["rtt_ms"]), 3),
                row.runs,
                *("" if s is None else trimmed(s, 6) for s in times),
                "" if gain is None else trimmed(gain, 4),
                *([row.part] if with_part else []),
            ]
        )
    return text.getvalue()


def _grid(rows: Sequence[Row], reuse: int | None, absent: str) -> Grid:
    note = f"Means over the runs that both arms have. {absent}".strip()
    return Grid(
        f"Results with {_up_to(reuse)}",
        (
            *("Page", "RTT (ms)", "Runs", "PLT without Fast Open (s)", "PLT with Fast Open (s)"),
            *("Improvement (%)", "Connections"),
        ),
        tuple(
            (
                ", ".join(part for part in (str(row.axes["page"]), row.part) if part),
                float(row.axes["rtt_ms"]),
                row.runs,
                rounded(row.off_s, 3),
                rounded(row.on_s, 3),
                rounded(row.improvement_pct, 1),
                row.connections,
            )
            for row in rows
        ),
        note,
    )


def _figures(rows: Sequence[Row], absent: str) -> tuple[Figure, ...]:
    points = [
        {
            "rtt_ms": float(row.axes["rtt_ms"]),
            "improvement_pct": row.improvement_pct,
            KEY: row.resources,
            "page": ", ".join(part for part in (str(row.axes["page"]), row.part) if part),
        }
        for row in rows
        if row.improvement_pct is not None
    ]
    if not points:
        return ()
    chart = plot.lines(
        pd.DataFrame(points), x="rtt_ms", y="improvement_pct", color=KEY, facet="page"
    )
    caption = (
        "How much sooner each page loads with Fast Open, in percent of the mean time without, "
        f"over the round-trip time, by the number of resources that a connection serves. {absent}"
    )
    title = "Improvement by resources per connection"
    return (Figure("cs244-improvement", title, chart, caption.strip()),)


def _place(reuse: Any) -> tuple[int, float]:
    known = ORDER.index(reuse) if reuse in ORDER else len(ORDER)
    return known, float("inf") if reuse is None else float(reuse)


def _up_to(reuse: int | None) -> str:
    if reuse is None:
        return "any number of resources per connection"
    return f"{count(reuse, 'resource')} per connection"
