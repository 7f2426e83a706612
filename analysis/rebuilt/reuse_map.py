"""Where connection reuse, the initial window and Fast Open each pay: one map for each page.

Nothing is published of this sweep; its link and pages are those of Table 1.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.rebuilt import Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import (
    RUN,
    ladder,
    name_absent,
    named,
    plain,
    proven_loads,
    rounded,
    split_loads,
    titled,
)
from analysis.records.results import Results
from analysis.words import count, number

REUSE, WINDOW, TFO = "requests_per_connection", "initcwnd_segments", "tfo"
AXES = ("page", "rtt_ms", REUSE, WINDOW, TFO)
UNLIMITED = float("inf")
KEY = "Requests per connection, initial window"
KEY_ARMS = f"{KEY}, Fast Open"
ALONE = ("Fast Open", "reuse", "window")
ALL = "all three"
LAST = "Fast Open after the others"
# What is compared with the base (off, least reuse, least window): tfo, reuse and window raised?
RAISED = {
    "Fast Open": (True, False, False),
    "reuse": (False, True, False),
    "window": (False, False, True),
    ALL: (True, True, True),
}


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return two maps for each page, and the table of what each mechanism saves alone."""
    absent = name_absent(results)
    tables: list[Grid] = []
    figures: list[Figure] = []
    for part, loads in split_loads(proven_loads(results), AXES):
        if loads.empty:
            continue
        frame = with_setting(loads)
        for window, pair in by_window(frame):
            named_part = ", ".join(filter(None, (part, window)))
            tables.append(_grid(mechanism_savings(pair), ends(pair), named_part, absent))
        for page, one in frame.groupby("page", sort=False):
            figures += _maps(one, str(page), part, absent)
    title = "Where reuse, the initial window and Fast Open pay"
    return Rebuilt(title, tuple(tables), tuple(figures))


def with_setting(loads: pd.DataFrame) -> pd.DataFrame:
    """``loads`` with reuse as a number (any is UNLIMITED) and with KEY, in the order of maps."""
    reuse = pd.to_numeric(loads[REUSE]).astype(float).fillna(UNLIMITED)
    frame = loads.assign(**{REUSE: reuse}).sort_values(
        [REUSE, WINDOW, "rtt_ms", TFO], kind="stable"
    )
    names = [setting_name(r, int(w)) for r, w in zip(frame[REUSE], frame[WINDOW], strict=True)]
    return frame.assign(**{KEY: names})


def setting_name(reuse: float, window: int) -> str:
    """Reuse and window, short enough for an axis: ``1, 10`` or ``any, 32``."""
    return f"{'any' if reuse == UNLIMITED else f'{reuse:g}'}, {window}"


def fast_open_savings(frame: pd.DataFrame) -> pd.DataFrame:
    """Of each run in both arms: ``saving_pct``, by page, RTT, reuse, window and KEY."""
    known = ["page", "rtt_ms", REUSE, WINDOW, KEY, *RUN]
    off, on = (frame[frame[TFO] == arm][[*known, "plt_s"]] for arm in (False, True))
    both = off.merge(on, on=known, suffixes=("_off", "_on"))
    gain = (both["plt_s_off"] - both["plt_s_on"]) / both["plt_s_off"] * 100.0
    return both.assign(saving_pct=gain)


def ends(frame: pd.DataFrame) -> tuple[tuple[float, float], tuple[int, int]]:
    """The least and the most reuse, the least and the greatest window of the sweep."""
    reuse, windows = ladder(frame[REUSE]), ladder(frame[WINDOW])
    return (reuse[0], reuse[-1]), (windows[0], windows[-1])


def by_window(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The loads with the least window and one larger, for each larger one, by name.

    With one window or two there is nothing to choose, and the name is empty.
    """
    least, *larger = ladder(frame[WINDOW])
    if len(larger) < 2:
        return [("", frame)]
    return [
        (f"a window of {window:g}", frame[frame[WINDOW].isin([least, window])]) for window in larger
    ]


def mechanism_savings(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each page and RTT; NaN where a load that it needs is not proven.

    Columns: ``page``, ``rtt_ms``, ``base_s`` (without Fast Open, least reuse, least window), what
    each of ALONE and ALL saves of it in %, and LAST: what Fast Open saves, in %, of a load that
    has the most reuse and the greatest window already.  Medians over runs that have both.
    """
    (least_reuse, most_reuse), (least_window, most_window) = ends(frame)
    reuse, window = (least_reuse, most_reuse), (least_window, most_window)
    rows = []
    pages = list(dict.fromkeys(frame["page"]))
    for (page, rtt_ms), one in sorted(
        frame.groupby(["page", "rtt_ms"]), key=lambda group: (pages.index(group[0][0]), group[0][1])
    ):
        times = {
            (tfo, more, wide): _times(one, bool(tfo), reuse[more], window[wide])
            for tfo in (0, 1)
            for more in (0, 1)
            for wide in (0, 1)
        }
        base = times[0, 0, 0]
        row: dict[str, Any] = {"page": page, "rtt_ms": rtt_ms, "base_s": base.median()}
        for name, (tfo, more, wide) in RAISED.items():
            row[name] = _saving_pct(base, times[int(tfo), int(more), int(wide)])
        row[LAST] = _saving_pct(times[0, 1, 1], times[1, 1, 1])
        rows.append(row)
    return pd.DataFrame(rows)


def _times(frame: pd.DataFrame, tfo: bool, reuse: float, window: float) -> pd.Series[float]:
    chosen = frame[(frame[TFO] == tfo) & (frame[REUSE] == reuse) & (frame[WINDOW] == window)]
    return chosen.set_index(list(RUN))["plt_s"]


def _saving_pct(base: pd.Series[float], other: pd.Series[float]) -> float:
    both = pd.concat({"base": base, "other": other}, axis=1, join="inner")
    return float(((both["base"] - both["other"]) / both["base"] * 100.0).median())


def _grid(
    savings: pd.DataFrame,
    swept: tuple[tuple[float, float], tuple[int, int]],
    part: str,
    absent: str,
) -> Grid:
    (least_reuse, most_reuse), windows = swept
    note = (
        "Each alone against the load without Fast Open, with "
        f"{_requests(least_reuse)} on a connection and a window of {windows[0]}: Fast Open on, "
        f"{_requests(most_reuse)} on a connection, or a window of {windows[1]}. "
        "Fast Open after the others: what it saves of a load that has both. " + absent
    )
    rows = tuple(
        (
            str(row["page"]),
            plain(row["rtt_ms"]),
            rounded(row["base_s"], 3),
            *(rounded(row[name], 1) for name in (*ALONE, ALL, LAST)),
            _most(row),
        )
        for _, row in savings.iterrows()
    )
    columns = (
        *("Page", "RTT (ms)", "Load without any (s)"),
        *(f"{name[0].upper()}{name[1:]} (%)" for name in (*ALONE, ALL, LAST)),
        "Pays most",
    )
    return Grid(titled("What each mechanism saves", part), columns, rows, note.strip())


def _most(row: pd.Series[Any]) -> str | None:
    """The mechanism that saves most alone, if all three are known and any saves anything."""
    known = {name: plain(row[name]) for name in ALONE}
    if None in known.values():
        return None
    best = max(known, key=lambda name: known[name])
    return best if known[best] > 0 else "none"


def _maps(frame: pd.DataFrame, page: str, part: str, absent: str) -> list[Figure]:
    arms = frame[TFO].map({True: "on", False: "off"})
    every = frame.assign(**{KEY_ARMS: frame[KEY] + ", " + arms})
    label = f"{page}, {part}".strip(", ")
    maps = [
        Figure(
            named("reuse-plt", label),
            f"{label}: page load time",
            plot.heatmap(every, x="rtt_ms", y=KEY_ARMS, value="plt_s"),
            f"Page load time of {label} in s by round-trip time, requests per connection, initial "
            f"window and Fast Open. {absent}".strip(),
        )
    ]
    savings = fast_open_savings(frame)
    if not savings.empty:
        found = savings["saving_pct"]
        ranged = f"{number(found.min(), 1)} to {number(found.max(), 1)} %"
        saving = Figure(
            named("reuse-saving", label),
            f"{label}: what Fast Open saves",
            plot.heatmap(savings, x="rtt_ms", y=KEY, value="saving_pct", diverging=True),
            f"Page load time of {label} saved by Fast Open, in percent of the time without "
            f"({ranged}). {absent}".strip(),
        )
        maps.insert(0, saving)
    return maps


def _requests(reuse: float) -> str:
    return "any number of requests" if reuse == UNLIMITED else count(int(reuse), "request")
