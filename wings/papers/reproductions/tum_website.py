"""Test website with Fast Open, a larger initial window, and both: Figures 4 and 5 of TUM.

Source: S. Scheibner, TCP Internals, TU Muenchen 2013, section 5.
"""

from __future__ import annotations

import pandas as pd

from analysis import plot
from analysis.records.results import Results
from analysis.report.publications import Figure, Grid, Rebuilt, StatedCheck
from wings.papers.published.reference import Reference
from wings.papers.reproductions.agreement import check_claims
from wings.papers.reproductions.sweep import (
    RUN,
    grid_of,
    median_columns,
    named,
    proven_loads,
    published_for,
    split_loads,
    titled,
)

KEY = "Fast Open, initial window"
WINDOW = "initcwnd_segments"
AXES = ("page", "rtt_ms", "tfo", WINDOW)
NEITHER, *MECHANISMS = "neither", "Fast Open", "larger window", "both"


def rebuild(results: Results, reference: Reference) -> Rebuilt:
    """Return one table of both figures, both figures, and the checks of what the text states."""
    tables: list[Grid] = []
    figures: list[Figure] = []
    checks: list[StatedCheck] = []
    for part, frame in split_loads(proven_loads(results), AXES):
        loads = with_savings(frame)
        for page, page_loads in loads.groupby("page", sort=False):
            label = part if loads["page"].nunique() == 1 else f"{page}, {part}".strip(", ")
            tables.append(_grid(page_loads, label))
            figures += _figures(page_loads, label)
        arms = medians(published_for(loads, reference))
        checks += check_claims(reference, {"arms": arms, "sites": by_site(arms)}, part)
    title = "A test website with Fast Open and a larger initial window"
    return Rebuilt(title, tuple(tables), tuple(figures), tuple(checks))


def with_savings(loads: pd.DataFrame) -> pd.DataFrame:
    """Return ``loads`` with what each run saves of the same without either mechanism.

    Columns: ``arm`` in words, KEY as a figure's key has room for it (``off, 4``), ``mechanism``
    (NEITHER or of MECHANISMS; NaN for windows between the least and the greatest), and ``saved_s``
    and ``improvement`` in percent, NaN for runs without a base and for the base itself.
    """
    loads = loads.sort_values(["rtt_ms", "tfo", WINDOW], kind="stable")
    tfo, windows = loads["tfo"].astype(bool), loads[WINDOW]
    arms = list(zip(tfo, windows, strict=True))
    least, most = windows.min(), windows.max()
    swept = ((False, least), (True, least), (False, most), (True, most))
    # Of one window only, the first two: a larger one is not measured.
    names = dict(reversed(list(zip(swept, (NEITHER, *MECHANISMS), strict=True))))
    loads = loads.assign(
        arm=[f"{'Fast Open' if on else 'no Fast Open'}, window {window}" for on, window in arms],
        mechanism=pd.Series([names.get(arm) for arm in arms], loads.index, dtype=object),
        **{KEY: [f"{'on' if on else 'off'}, {window}" for on, window in arms]},
    )
    run = ["page", "rtt_ms", *RUN]
    base = loads[loads["mechanism"] == NEITHER].set_index(run)["plt_s"].rename("base_s")
    loads = loads.join(base, on=run)
    saved = (loads["base_s"] - loads["plt_s"]).where(loads["mechanism"] != NEITHER)
    return loads.assign(saved_s=saved, improvement=saved / loads["base_s"] * 100.0)


def medians(loads: pd.DataFrame) -> pd.DataFrame:
    """Return the median ``plt_s``, ``saved_s`` and ``improvement`` of each RTT and mechanism.

    Each has the ends of its interval beside it (`median_columns`).
    """
    known = loads.dropna(subset=["mechanism"])
    return median_columns(known, [*AXES, "mechanism"], ["plt_s", "saved_s", "improvement"])


def by_site(arms: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each page and RTT: ``neither_s``, ``fast_open_s``, ..., ``both_pct``."""
    if arms.empty:
        return arms
    table = arms.pivot(index=["page", "rtt_ms"], columns="mechanism")
    return pd.DataFrame({
        f"{name.lower().replace(' ', '_')}_{unit}": (
            table[value, name] if (value, name) in table else float("nan")
        )
        for value, unit in (("plt_s", "s"), ("improvement", "pct"))
        for name in (NEITHER, *MECHANISMS)
    }, index=table.index).reset_index()  # fmt: skip


def _grid(loads: pd.DataFrame, label: str) -> Grid:
    """Return one row for each RTT: the load time of each arm, then each improvement."""
    arms = dict.fromkeys(loads["arm"])
    times, gains = (loads.pivot_table(index="rtt_ms", columns="arm", values=value, aggfunc="median")
                    for value in ("plt_s", "improvement"))  # fmt: skip
    return grid_of(
        times.join(gains.add_suffix(" gain")).reset_index(), titled("Figures 4 and 5", label),
        {"rtt_ms": "RTT (ms)", **{arm: f"{arm} (s)|3" for arm in arms},
         **{f"{arm} gain": f"Improvement: {arm} (%)|1" for arm in arms if arm in gains}}
    )  # fmt: skip


def _figures(loads: pd.DataFrame, label: str) -> list[Figure]:
    absolute = Figure(
        named("website-duration", label),
        titled("Figure 4: duration of the complete download", label),
        plot.lines(loads, x="rtt_ms", y="plt_s", color=KEY),
        "Time until the whole website is loaded, over the round-trip time, with and without Fast "
        "Open and with two initial windows.",
    )
    gains = loads.dropna(subset="improvement")
    if gains.empty:
        return [absolute]
    relative = Figure(
        named("website-improvement", label), titled("Figure 5: improvement", label),
        plot.lines(gains.rename(columns={"improvement": "improvement_pct"}), x="rtt_ms",
                   y="improvement_pct", color=KEY),
        "How much sooner the website is loaded than without Fast Open and with the smaller "
        "window, in percent of that time, over the round-trip time."
    )  # fmt: skip
    return [absolute, relative]
