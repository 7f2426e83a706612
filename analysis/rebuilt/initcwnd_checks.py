"""What the TUM seminar paper states of transfer durations, beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from analysis.publications.reference import Reference
from analysis.publications.stated import Stated
from analysis.rebuilt.agreement import because, check_rows, check_sentence, check_value, see
from analysis.rebuilt.rebuilt import Check
from analysis.rebuilt.sweep import ladder, plain, published_for, titled
from analysis.rebuilt.transfers import BASE, WINDOW, gains_pct, medians
from analysis.words import MISSING, axis_value, number, signed

MODEL_WITHIN_PCT = 1.0
WIDER = 10
"""The window that the source compares with BASE."""


def check_durations(
    frame: pd.DataFrame, theory: pd.DataFrame, reference: Reference | None, part: str
) -> Iterator[Check]:
    """Yield a check of each stated value and sentence, and of the model beside ours."""
    published = published_for(frame, reference)
    for stated in reference.select("duration") if reference else ():
        yield _check_duration(published, stated, reference, part)
    for stated in reference.select("window_gain") if reference else ():
        yield _check_gain(published, stated, reference, part)
    yield from _check_sizes(published, reference)
    yield from _check_round_trips(published, reference)
    yield _check_model(frame, theory, part)


def _check_duration(
    frame: pd.DataFrame, stated: Stated, reference: Reference | None, part: str
) -> Check:
    ours = plain(_cell(frame, stated).median())
    what = titled(f"duration of {_what(stated)}", part)
    if ours is None or stated.value is None:
        return check_value(stated, what, ())
    rtt_s = float(stated.axes["rtt_ms"]) / 1000.0
    extra = stated.value - ours
    why = (
        f"Theirs takes {number(extra, 2)} s more: {number(extra / rtt_s, 1)} round trips"
        f"{_same_extra(frame, stated, reference)}."
    )
    return check_value(stated, what, [ours], because(why, see(reference, "slow start needs")))


def _same_extra(frame: pd.DataFrame, stated: Stated, reference: Reference | None) -> str:
    """Whether the other durations stated for this RTT are off by the same time."""
    extras = [
        one.value - float(ours)
        for one in (reference.select("duration") if reference else ())
        if one.value is not None and one.axes.get("rtt_ms") == stated.axes.get("rtt_ms")
        if (ours := plain(_cell(frame, one).median())) is not None
    ]
    # Durations are stated to a tenth of a second: extras alike to that are the same.
    alike = len(extras) > 1 and max(extras) - min(extras) <= 0.1
    return (
        ", as at the other window: the difference between the windows is the same" if alike else ""
    )


def _check_gain(
    frame: pd.DataFrame, stated: Stated, reference: Reference | None, part: str
) -> Check:
    rtt_ms, page = stated.axes["rtt_ms"], stated.axes["page"]
    durations = medians(frame[frame["rtt_ms"] == rtt_ms], "plt_s")
    gains = gains_pct(durations, int(stated.axes[WINDOW]))
    what = titled(f"improvement of {_what(stated)} against a window of {BASE}", part)
    if page not in gains:
        return check_value(stated, what, ())
    base, other = (float(durations[page][w]) for w in (BASE, stated.axes[WINDOW]))
    trips = (base - other) / (float(rtt_ms) / 1000.0)
    why = (
        f"Ours saves {number(base - other, 3)} s ({number(trips, 1)} round trips) of "
        f"{number(base, 3)} s; the stated share would be of {_whole(base - other, stated)} s."
    )
    return check_value(
        stated, what, [gains[page]], because(why, see(reference, "slow start needs"))
    )


def _whole(saved_s: float, stated: Stated) -> str:
    """The duration of which ``saved_s`` is the stated share."""
    return number(saved_s / stated.value * 100.0, 2) if stated.value else MISSING


def _check_sizes(frame: pd.DataFrame, reference: Reference | None) -> list[Check]:
    """The longer the transfer, the smaller the improvement."""
    held: list[str] = []
    broken: list[str] = []
    for rtt_ms in ladder(frame["rtt_ms"]):
        gains = gains_pct(medians(frame[frame["rtt_ms"] == rtt_ms], "plt_s"), WIDER)
        if len(gains) < 2:
            continue
        # `medians` has the pages in the order of their durations.
        text = ", ".join(f"{page} {number(gain, 1)} %" for page, gain in gains.items())
        falls = all(a > b for a, b in pairwise(gains.values()))
        (held if falls else broken).append(f"RTT {axis_value('rtt_ms', rtt_ms)} ({text})")
    why = (
        "The windows save whole round trips: a file whose last flight just fits saves one more "
        "than a smaller file does."
    )
    return check_sentence(reference, "1 MiB profits", held, broken, why)


def _check_round_trips(frame: pd.DataFrame, reference: Reference | None) -> list[Check]:
    """The shorter the round-trip time, the smaller the improvement."""
    by_rtt = {
        rtt_ms: gains_pct(medians(frame[frame["rtt_ms"] == rtt_ms], "plt_s"), WIDER)
        for rtt_ms in ladder(frame["rtt_ms"])
    }
    if len(by_rtt) < 2:
        return check_sentence(reference, "lower round-trip time", [], [], "")
    low, high = by_rtt[min(by_rtt)], by_rtt[max(by_rtt)]
    held: list[str] = []
    broken: list[str] = []
    for page in (name for name in low if name in high):
        text = f"{page} ({number(low[page], 1)} % and {number(high[page], 1)} %)"
        (held if low[page] < high[page] else broken).append(text)
    why = (
        "The window saves whole round trips, and more of them on the shorter path: on the longer "
        "one it saves as many, but of more."
    )
    return check_sentence(reference, "lower round-trip time", held, broken, why)


def _check_model(frame: pd.DataFrame, theory: pd.DataFrame, part: str) -> Check:
    """The closed form beside ours, transfer by transfer; the worst are named first."""
    what = titled(f"the closed form predicts each transfer to {MODEL_WITHIN_PCT:g} %", part)
    if theory.empty:
        return check_rows("Model", what, [], [])
    both = frame.merge(theory[["trial_id", "model_s"]], on="trial_id")
    gaps = both.assign(gap_pct=(both["plt_s"] / both["model_s"] - 1.0) * 100.0)
    held: list[str] = []
    broken: list[str] = []
    worst_first = gaps.sort_values("gap_pct", key=abs, ascending=False, kind="stable")
    for row in worst_first.to_dict("records"):
        gap = float(row["gap_pct"])
        at = f"{row['page']}, window {row[WINDOW]}, RTT {axis_value('rtt_ms', row['rtt_ms'])}"
        within = abs(gap) <= MODEL_WITHIN_PCT
        (held if within else broken).append(f"{at} ({signed(gap, 2)} %)")
    why = (
        "There the real stack acknowledges, or leaves slow start, at another packet than the "
        "closed form supposes."
    )
    return check_rows("Model", what, held, broken, why)


def _cell(frame: pd.DataFrame, stated: Stated) -> pd.Series[float]:
    for name, value in stated.axes.items():
        frame = frame[frame[name] == value]
    return frame["plt_s"]


def _what(stated: Stated) -> str:
    axes = stated.axes
    return (
        f"{axes['page']} at RTT {axis_value('rtt_ms', axes['rtt_ms'])} with a window of "
        f"{axes[WINDOW]}"
    )
