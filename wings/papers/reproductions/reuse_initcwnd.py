"""Map of connection reuse, the initial window and Fast Open: where each pays, page by page.

Nothing is published of this sweep; its link and pages are those of Table 1.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd

from analysis import plot
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt
from analysis.words import count, number
from wings.papers.published.reference import Reference
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    ladder,
    named,
    proven_loads,
    split_loads,
    titled,
)

REUSE, WINDOW, TFO = "requests_per_connection", "initcwnd_segments", "tfo"
AXES = ("page", "rtt_ms", REUSE, WINDOW, TFO)
UNLIMITED = float("inf")
KEY = "Requests per connection, initial window"
KEY_ARMS = f"{KEY}, Fast Open"
ALONE = ("Fast Open", "reuse", "window")
LAST = "Fast Open after the others"
# Which of Fast Open, most reuse and the larger window a load has, and the load it is compared with.
COMPARED = {"Fast Open": ((True, False, False), (False, False, False)),
            "reuse": ((False, True, False), (False, False, False)),
            "window": ((False, False, True), (False, False, False)),
            "all three": ((True, True, True), (False, False, False)),
            LAST: ((True, True, True), (False, True, True))}  # fmt: skip


def rebuild(results: Results, _: Reference | None) -> Rebuilt:
    """Return two maps for each page, and the table of what each mechanism saves alone."""
    tables: list[Grid] = []
    figures: list[Figure] = []
    for part, loads in split_loads(proven_loads(results), AXES):
        if loads.empty:
            continue
        reuse = pd.to_numeric(loads[REUSE]).astype(float).fillna(UNLIMITED)
        frame = loads.assign(**{REUSE: reuse}).sort_values(
            [REUSE, WINDOW, "rtt_ms", TFO], kind="stable"
        )
        least, *larger = ladder(frame[WINDOW])
        for window in larger or [least]:
            pair = frame[frame[WINDOW].isin([least, window])]
            name = f"a window of {window:g}" if len(larger) > 1 else ""
            tables.append(_grid(pair, ", ".join(filter(None, (part, name)))))
        for page, page_loads in frame.groupby("page", sort=False):
            figures += _maps(page_loads, f"{page}, {part}".strip(", "))
    title = "Where reuse, the initial window and Fast Open pay"
    return Rebuilt(title, tuple(tables), tuple(figures))


def mechanism_savings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each page and RTT; NaN where a load that it needs is not proven.

    Columns: ``page``, ``rtt_ms``, ``base_s`` (without Fast Open, least reuse, least window), and
    what each of COMPARED saves in %, as the median over the runs that have both loads.
    """
    steps = [[False, True], *(ladder(frame[name]) for name in (REUSE, WINDOW))]
    rows = []
    for (page, rtt_ms), at_rtt in frame.groupby(["page", "rtt_ms"], sort=False):
        times = at_rtt.pivot_table(index=list(RUN), columns=[TFO, REUSE, WINDOW], values="plt_s")
        # A setting without any proven load has no column yet: it becomes NaN in every run.
        settings = pd.MultiIndex.from_product(steps)
        times = times.reindex(columns=times.columns.union(settings))
        load = {
            key: times[
                tuple(values[-1 if top else 0] for values, top in zip(steps, key, strict=True))
            ]
            for key in product((False, True), repeat=3)
        }
        row: dict[str, Any] = {"page": page, "rtt_ms": rtt_ms}
        row["base_s"] = load[False, False, False].median()
        for name, (raised, base) in COMPARED.items():
            row[name] = ((1 - load[raised] / load[base]) * 100.0).median()
        rows.append(row)
    pages = list(dict.fromkeys(frame["page"]))
    rows.sort(key=lambda row: (pages.index(row["page"]), row["rtt_ms"]))
    return pd.DataFrame(rows)


def _grid(frame: pd.DataFrame, part: str) -> Grid:
    reuse, windows = ladder(frame[REUSE]), ladder(frame[WINDOW])
    note = ("Each alone against the load without Fast Open, with "
            f"{_requests(reuse[0])} on a connection and a window of {windows[0]}: Fast Open on, "
            f"{_requests(reuse[-1])} on a connection, or a window of {windows[-1]}. "
            "Fast Open after the others: what it saves of a load that has both.")  # fmt: skip
    savings = mechanism_savings(frame)
    alone = savings[list(ALONE)]
    # Of all three known: the one that saves most, if any saves anything.
    most = alone.dropna().idxmax(axis="columns").where(alone.max(axis="columns") > 0, "none")
    columns = {**{"page": "Page", "rtt_ms": "RTT (ms)", "base_s": "Load without any (s)|3"},
               **{name: f"{name[0].upper()}{name[1:]} (%)|1" for name in COMPARED},
               "most": "Pays most"}  # fmt: skip
    title = titled("What each mechanism saves", part)
    return grid_of(savings.assign(most=most), title, columns, note)


def _maps(frame: pd.DataFrame, label: str) -> list[Figure]:
    names = [f"{'any' if reuse == UNLIMITED else f'{reuse:g}'}, {window:g}"
             for reuse, window in zip(frame[REUSE], frame[WINDOW], strict=True)]  # fmt: skip
    frame = frame.assign(**{KEY: names})
    arms = frame[TFO].map({True: "on", False: "off"})
    times = Figure(
        named("reuse-plt", label), f"{label}: page load time",
        plot.heatmap(frame.assign(**{KEY_ARMS: frame[KEY] + ", " + arms}), x="rtt_ms", y=KEY_ARMS,
                     value="plt_s"),
        f"Page load time of {label} in s by round-trip time, requests per connection, initial "
        "window and Fast Open."
    )  # fmt: skip
    known = ["page", "rtt_ms", REUSE, WINDOW, KEY, *RUN]
    off, on = (frame[frame[TFO] == arm][[*known, "plt_s"]] for arm in (False, True))
    savings = off.merge(on, on=known, suffixes=("_off", "_on"))
    if savings.empty:
        return [times]
    gain = (savings["plt_s_off"] - savings["plt_s_on"]) / savings["plt_s_off"] * 100.0
    ranged = f"{number(gain.min(), 1)} to {number(gain.max(), 1)} %"
    saved = Figure(
        named("reuse-saving", label),
        f"{label}: what Fast Open saves",
        plot.heatmap(
            savings.assign(saving_pct=gain), x="rtt_ms", y=KEY, value="saving_pct", diverging=True
        ),
        f"Page load time of {label} saved by Fast Open, in percent of the time without ({ranged}).",
    )
    return [saved, times]


def _requests(reuse: float) -> str:
    return "any number of requests" if reuse == UNLIMITED else count(int(reuse), "request")
