"""A test website with Fast Open, with a larger window, and with both: Figures 4 and 5 of TUM.

Source: S. Scheibner, TCP Internals, TU Muenchen 2013, section 5.
"""

from __future__ import annotations

import pandas as pd

from analysis import plot
from analysis.publications.reference import Reference
from analysis.rebuilt.rebuilt import Check, Figure, Grid, Rebuilt
from analysis.rebuilt.sweep import (
    name_absent,
    named,
    pair_runs,
    plain,
    proven_loads,
    rounded,
    split_loads,
    titled,
)
from analysis.rebuilt.website_checks import MECHANISMS, check_website
from analysis.records.results import Results

KEY = "Fast Open, initial window"
AXES = ("page", "rtt_ms", "tfo", "initcwnd_segments")


def rebuild(results: Results, reference: Reference | None) -> Rebuilt:
    """Return one table of both figures, both figures, and the checks of what the text states."""
    absent = name_absent(results)
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[Check] = []
    for part, frame in split_loads(with_arms(proven_loads(results)), AXES):
        for page, one in frame.groupby("page", sort=False):
            label = part if frame["page"].nunique() == 1 else f"{page}, {part}".strip(", ")
            gains = improvements(one)
            if not one.empty:
                tables.append(_grid(one, gains, label, absent))
                figures.append(_absolute(one, label, absent))
            if not gains.empty:
                figures.append(_relative(gains, label, absent))
        checks += check_website(frame, improvements(frame), reference, part)
    title = "A test website with Fast Open and a larger initial window"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def with_arms(loads: pd.DataFrame) -> pd.DataFrame:
    """``loads`` with the column ``arm``, sorted as the figures' keys are."""
    ordered = loads.sort_values(["rtt_ms", "tfo", "initcwnd_segments"], kind="stable")
    names = [
        arm_name(bool(tfo), int(window))
        for tfo, window in zip(ordered["tfo"], ordered["initcwnd_segments"], strict=True)
    ]
    return ordered.assign(arm=names)


def arm_name(tfo: bool, window: int) -> str:
    """What the two mechanisms are set to, in words."""
    return f"{'Fast Open' if tfo else 'no Fast Open'}, window {window}"


def with_key(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with the arms as a figure's key has room for them: ``off, 4``."""
    arms = zip(frame["tfo"], frame["initcwnd_segments"], strict=True)
    return frame.assign(**{KEY: [f"{'on' if tfo else 'off'}, {window}" for tfo, window in arms]})


def improvements(frame: pd.DataFrame) -> pd.DataFrame:
    """How much sooner each run is than the same without Fast Open and with the least window.

    Columns: ``page``, ``rtt_ms``, ``seed``, ``repetition``, ``tfo``, ``initcwnd_segments``,
    ``arm``, ``mechanism`` (of the least and the greatest window only: which of MECHANISMS),
    ``saved_s`` and ``improvement_pct``; runs that lack the base, and the base, are not in it.
    """
    columns = ["page", "rtt_ms", "seed", "repetition", "tfo", "initcwnd_segments"]
    columns += ["arm", "mechanism", "saved_s", "improvement_pct"]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    least, most = (int(end) for end in frame["initcwnd_segments"].agg(["min", "max"]))
    base = arm_name(False, least)
    mechanisms = dict(zip(((True, least), (False, most), (True, most)), MECHANISMS, strict=True))
    times = pair_runs(frame, ("page", "rtt_ms"), "arm")
    if base not in times:
        return pd.DataFrame(columns=columns)
    kept = frame[frame["arm"] != base].merge(
        times[[base]].rename(columns={base: "base_s"}).dropna().reset_index(),
        on=["page", "rtt_ms", "seed", "repetition"],
    )
    arms = zip(kept["tfo"].astype(bool), kept["initcwnd_segments"], strict=True)
    saved = kept["base_s"] - kept["plt_s"]
    return kept.assign(
        mechanism=pd.Series([mechanisms.get(arm) for arm in arms], kept.index, dtype=object),
        saved_s=saved,
        improvement_pct=saved / kept["base_s"] * 100.0,
    )[columns]


def _grid(frame: pd.DataFrame, gains: pd.DataFrame, label: str, absent: str) -> Grid:
    """One row for each RTT: the load time of each arm, then each improvement."""
    times, shares = (
        f.pivot_table(index="rtt_ms", columns="arm", values=value, aggfunc="median", sort=False)
        for f, value in ((frame, "plt_s"), (gains, "improvement_pct"))
    )
    arms = list(dict.fromkeys(frame["arm"]))
    gained = [arm for arm in arms if arm in shares]
    rows = tuple(
        (
            plain(rtt_ms),
            *(rounded(times.at[rtt_ms, arm], 3) for arm in arms),
            *(
                rounded(shares.at[rtt_ms, arm], 1) if rtt_ms in shares.index else None
                for arm in gained
            ),
        )
        for rtt_ms in sorted(times.index)
    )
    columns = (
        "RTT (ms)",
        *(f"{arm} (s)" for arm in arms),
        *(f"Improvement: {arm} (%)" for arm in gained),
    )
    return Grid(titled("Figures 4 and 5", label), columns, rows, absent)


def _absolute(frame: pd.DataFrame, label: str, absent: str) -> Figure:
    return Figure(
        named("website-duration", label),
        titled("Figure 4: duration of the complete download", label),
        plot.lines(with_key(frame), x="rtt_ms", y="plt_s", color=KEY),
        "Time until the whole website is loaded, over the round-trip time, with and without Fast "
        f"Open and with two initial windows. {absent}".strip(),
    )


def _relative(gains: pd.DataFrame, label: str, absent: str) -> Figure:
    return Figure(
        named("website-improvement", label),
        titled("Figure 5: improvement", label),
        plot.lines(with_key(gains), x="rtt_ms", y="improvement_pct", color=KEY),
        "How much sooner the website is loaded than without Fast Open and with the smaller "
        f"window, in percent of that time, over the round-trip time. {absent}".strip(),
    )
