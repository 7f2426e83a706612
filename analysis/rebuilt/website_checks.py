"""What the TUM seminar paper states of its test website, beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from analysis.publications.reference import Reference
from analysis.publications.stated import Stated
from analysis.rebuilt.agreement import agrees, because, check_sentence, check_value, see, span
from analysis.rebuilt.rebuilt import Check
from analysis.rebuilt.sweep import ladder, plain, published_for, titled
from analysis.words import axis_value, number

ABOVE_MS = 50.0
ALMOST_PCT = (85.0, 105.0)
"""What counts as "almost the sum": both together in percent of the sum of each alone."""
MECHANISMS = ("Fast Open", "larger window", "both")
WINDOW = "initcwnd_segments"


def check_website(
    frame: pd.DataFrame, gains: pd.DataFrame, reference: Reference | None, part: str
) -> Iterator[Check]:
    """Yield a check of each stated range and sentence; ``gains`` are `tum_website.improvements`."""
    frame, gains = published_for(frame, reference), gains[gains["page"].isin(set(frame["page"]))]
    for stated in reference.select() if reference else ():
        if stated.quantity == "improvement_above_rtt_50ms":
            above = gains[gains["rtt_ms"] > ABOVE_MS]
            what = titled(f"improvement by {_arm(stated)}, RTT above 50 ms", part)
            yield _check_range(above, stated, what, reference)
        elif stated.quantity == "improvement":
            what = titled(f"improvement by {_arm(stated)}, all RTTs", part)
            yield _check_range(gains, stated, what, reference)
    alone = _table(gains)
    yield from _check_order(frame, reference)
    yield from _check_growth(alone, reference)
    yield from _check_sum(alone, reference)


def _check_range(
    gains: pd.DataFrame, stated: Stated, what: str, reference: Reference | None
) -> Check:
    chosen = gains
    for name, value in stated.axes.items():
        chosen = chosen[chosen[name] == value]
    ours = _by_rtt(chosen, "improvement_pct")
    outside = [rtt_ms for rtt_ms, gain in ours.items() if not agrees(stated, gain)]
    if not outside:
        return check_value(stated, what, list(ours.values()))
    saved_s = _by_rtt(chosen, "saved_s")
    trips = [saved_s[rtt_ms] * 1000.0 / rtt_ms for rtt_ms in outside]
    whole = [one * 100.0 / ours[rtt] for one, rtt in zip(trips, outside, strict=True) if ours[rtt]]
    at = ", ".join(axis_value("rtt_ms", rtt_ms) for rtt_ms in outside)
    why = (
        f"At {at} it saves {span(trips, 1, 'round trips')}"
        f"{f' of {span(whole, 1, str())} that the load takes without it' if whole else ''}."
    )
    short = see(reference, "short round-trip") if min(outside) <= ABOVE_MS else ""
    reasons = because(why, see(reference, "shorter time"), short)
    return check_value(stated, what, list(ours.values()), reasons)


def _by_rtt(frame: pd.DataFrame, value: str) -> dict[float, float]:
    """The median of ``value`` at each RTT in ms."""
    found = frame.groupby("rtt_ms")[value].median()
    return dict(zip(ladder(frame["rtt_ms"]), found, strict=True))


def _check_order(frame: pd.DataFrame, reference: Reference | None) -> list[Check]:
    """Neither is slowest, both are fastest, and each alone is in between."""
    held: list[str] = []
    broken: list[str] = []
    for rtt_ms, one in frame.groupby("rtt_ms"):
        times = one.groupby(["tfo", WINDOW])["plt_s"].median()
        windows = sorted({window for _, window in times.index})
        if len(windows) < 2 or len(times) < 2 * len(windows):
            continue
        small, large = windows[0], windows[-1]
        none, both = times[False, small], times[True, large]
        between = [times[True, small], times[False, large]]
        text = f"RTT {axis_value('rtt_ms', plain(rtt_ms))}"
        (held if all(both < t < none for t in between) else broken).append(text)
    why = "Where the link is full either way, neither mechanism changes the load's end."
    return check_sentence(reference, "in the middle", held, broken, why)


def _check_growth(alone: pd.DataFrame, reference: Reference | None) -> list[Check]:
    """The improvement grows with each step of the round-trip time, mechanism by mechanism."""
    held: list[str] = []
    broken: list[str] = []
    for arm in alone.columns if len(alone) > 1 else ():
        values = alone[arm].dropna()
        falls = [
            axis_value("rtt_ms", plain(b))
            for a, b in pairwise(values.index)
            if values[b] <= values[a]
        ]
        text = f"{arm} ({span([values.iloc[0], values.iloc[-1]], 1, '%')})" if len(values) else arm
        if falls:
            broken.append(f"{arm}: no growth up to {', '.join(falls)}")
        elif len(values) > 1:
            held.append(text)
    why = (
        "The saving is a fixed number of round trips: once the load is nothing but round trips, "
        "its share stays the same however long each takes."
    )
    return check_sentence(reference, "larger the improvement", held, broken, why)


def _check_sum(alone: pd.DataFrame, reference: Reference | None) -> list[Check]:
    """Both together, in percent of the sum of each alone."""
    held: list[str] = []
    broken: list[str] = []
    if set(MECHANISMS) <= set(alone.columns):
        for rtt_ms, row in alone[alone.index > ABOVE_MS].dropna().iterrows():
            total = row["Fast Open"] + row["larger window"]
            if total <= 0:
                continue
            share = row["both"] / total * 100.0
            at = axis_value("rtt_ms", plain(rtt_ms))
            low, high = ALMOST_PCT
            text = f"RTT {at} ({number(row['both'], 1)} of {number(total, 1)} %)"
            (held if low <= share <= high else broken).append(text)
    low, high = ALMOST_PCT
    why = (
        f"Almost is taken as {low:g} to {high:g} % of the sum; each saves its own round trips, and "
        "where both save the same one, or where one opens the way for the other, it is not a sum."
    )
    return check_sentence(reference, "almost the sum", held, broken, why)


def _table(gains: pd.DataFrame) -> pd.DataFrame:
    """Median improvement in %: one row for each RTT, one column for each mechanism."""
    if gains.empty:
        return pd.DataFrame()
    return gains.pivot_table(
        index="rtt_ms", columns="mechanism", values="improvement_pct", aggfunc="median"
    )


def _arm(stated: Stated) -> str:
    tfo, window = bool(stated.axes.get("tfo")), stated.axes.get(WINDOW)
    return f"a window of {window} {'with' if tfo else 'without'} Fast Open"
