"""What the Fast Open paper states in and about Table 1, beside ours.

Source: S. Radhakrishnan et al., TCP Fast Open, CoNEXT 2011, section 6.1 and abstract.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from analysis.publications.reference import Reference
from analysis.rebuilt.agreement import (
    agrees,
    because,
    check_rows,
    check_sentence,
    check_value,
    in_words,
    see,
)
from analysis.rebuilt.rebuilt import Agreement, Check
from analysis.records.cells import Axes, Spread
from analysis.tables.table import Pair
from analysis.words import MISSING, axis_name, axis_value, number, signed

TOLERANCE_POINTS = 2.0
ALIKE = math.log(1.1)
"""Two quantities count as alike when they are within 10 % of each other."""
HIGH_RTT_MS = 100.0
WHERE = "Table 1"


def check_table(
    pairs: Sequence[Pair], others: Sequence[str], reference: Reference | None
) -> Iterator[Check]:
    """Yield a check of each published row, then of what is said about all of them.

    ``others`` are the swept knobs beside page, RTT and Fast Open.
    """
    published = [pair for pair in pairs if pair.paper is not None]
    for pair in published:
        yield _check_row(pair, others, reference)
    yield from _check_growth(published, others)
    yield from _check_mean(published, reference)
    yield from _check_high_rtt(published, others, reference)
    yield from _check_deviation(published, others, reference)


def _check_row(pair: Pair, others: Sequence[str], reference: Reference | None) -> Check:
    paper = pair.paper
    assert paper is not None  # noqa: S101 - only published rows are checked
    where = f"{WHERE}, {name_row(pair.axes, ['page', 'rtt_ms', *others])}"
    what = f"improvement with Fast Open, to within {TOLERANCE_POINTS:g} points"
    stated = (
        f"{number(paper.improvement_pct, 0)} % ({number(paper.plt_off_s, 2)} s to "
        f"{number(paper.plt_on_s, 2)} s)"
    )
    off, on, gain = pair.plt_off, pair.plt_on, pair.improvement_pct
    if off is None or on is None or gain is None:
        return Check(where, what, stated, MISSING, "not measured", pair.status.replace("_", " "))
    gap = gain.median - paper.improvement_pct
    ours = (
        f"{_percent(gain)} ({number(off.median / 1000, 2)} s to "
        f"{number(on.median / 1000, 2)} s; {signed(gap, 1)} points)"
    )
    if abs(gap) <= TOLERANCE_POINTS:
        return Check(where, what, stated, ours, "agrees")
    return Check(where, what, stated, ours, "differs", _reason(pair, off, on, reference))


def _reason(pair: Pair, off: Spread, on: Spread, reference: Reference | None) -> str:
    """Which of the two parts of an improvement differs more: the time saved, or the whole."""
    paper, rtt_ms = pair.paper, float(pair.axes["rtt_ms"])
    assert paper is not None  # noqa: S101 - only published rows are checked
    saved, whole = off.median - on.median, off.median
    their_saved, their_whole = (paper.plt_off_s - paper.plt_on_s) * 1000, paper.plt_off_s * 1000
    trips = (
        f"Fast Open saves {number(saved / rtt_ms, 1)} round trips here and "
        f"{number(their_saved / rtt_ms, 1)} in the paper"
    )
    part = f"the load without it takes {_ratio(whole, their_whole)} as in the paper"
    if saved <= 0 or their_saved <= 0:
        said = f"{trips}."
    else:
        by_saved, by_whole = abs(math.log(saved / their_saved)), abs(math.log(whole / their_whole))
        if by_saved <= ALIKE < by_whole:
            said = f"The time saved is alike, but {part}, so that it is another share of it."
        elif by_whole <= ALIKE < by_saved:
            said = f"The loads take alike without it, but {trips.replace('Fast Open', 'it')}."
        else:
            said = f"{trips}; {part}."
    original = reference.variants.get(str(pair.axes["page"])) if reference else None
    return because(said, see(reference, f"{original or pair.axes['page']} row"))


def _check_growth(published: Sequence[Pair], others: Sequence[str]) -> list[Check]:
    """The paper's improvement grows with the round-trip time on every page."""
    ladders: dict[str, list[Pair]] = {}
    for pair in sorted(published, key=lambda p: float(p.axes["rtt_ms"])):
        if pair.improvement_pct is not None:
            ladders.setdefault(name_row(pair.axes, ["page", *others]), []).append(pair)
    checks = []
    for name, steps in ladders.items():
        theirs = [p.paper.improvement_pct for p in steps if p.paper is not None]
        ours = [p.improvement_pct.median for p in steps if p.improvement_pct is not None]
        if len(ours) < 2 or not _grows(theirs):
            continue
        agreement: Agreement = "agrees" if _grows(ours) else "differs"
        falls = [
            f"from {axis_value('rtt_ms', a.axes['rtt_ms'])} to "
            f"{axis_value('rtt_ms', b.axes['rtt_ms'])} the load itself grows by a larger share "
            "than the time saved"
            for (a, b), (low, high) in zip(pairwise(steps), pairwise(ours), strict=True)
            if high <= low
        ]
        checks.append(
            Check(
                f"{WHERE}, {name}",
                "the improvement grows with the round-trip time",
                _steps(theirs, 0),
                _steps(ours, 1),
                agreement,
                f"{'; '.join(falls).capitalize()}." if falls else "",
            )
        )
    return checks


def _check_mean(published: Sequence[Pair], reference: Reference | None) -> list[Check]:
    """The mean over the rows that both sides have, and what the abstract says of it."""
    both = [
        (pair.improvement_pct.median, pair.paper.improvement_pct)
        for pair in published
        if pair.improvement_pct is not None and pair.paper is not None
    ]
    if len(both) < 2:
        return []
    ours, theirs = (statistics.fmean(side) for side in zip(*both, strict=True))
    near = abs(ours - theirs) <= TOLERANCE_POINTS
    below = sum(mine < paper for mine, paper in both)
    why = "" if near else f"Ours is below the paper's in {below} of {len(both)} rows."
    stated = reference.select("improvement_mean") if reference else ()
    what = f"mean improvement of page load time, {len(both)} rows"
    return [
        *(check_value(one, what, [ours], why) for one in stated),
        Check(
            WHERE,
            f"mean improvement of {len(both)} rows, to within {TOLERANCE_POINTS:g} points",
            f"{number(theirs, 1)} %",
            f"{number(ours, 1)} % ({signed(ours - theirs, 1)} points)",
            "agrees" if near else "differs",
            why,
        ),
    ]


def _check_high_rtt(
    published: Sequence[Pair], others: Sequence[str], reference: Reference | None
) -> list[Check]:
    """At a high RTT Fast Open helps every page."""
    gains = [
        (pair, pair.improvement_pct.median)
        for pair in published
        if pair.improvement_pct and float(pair.axes["rtt_ms"]) >= HIGH_RTT_MS
    ]
    held = [_gain_at(pair, gain, others) for pair, gain in gains if gain > 0]
    lost = [_gain_at(pair, gain, others) for pair, gain in gains if gain <= 0]
    why = "The round trips saved may hide behind a queue of the link; the waterfalls show it."
    return check_sentence(reference, "improves the load time of all pages", held, lost, why)


def _check_deviation(
    published: Sequence[Pair], others: Sequence[str], reference: Reference | None
) -> list[Check]:
    """The standard deviation of each cell, in percent of its mean."""
    held: list[str] = []
    broken: list[str] = []
    place = ""
    for pair in published:
        known = {n: pair.axes[n] for n in ("page", "rtt_ms")}
        for stated in reference.select("plt_deviation", **known) if reference else ():
            place = stated.place
            for arm, cell in pair.arms:
                times = list(cell.plt_by_seed.values()) if cell else []
                if len(times) < 2:
                    continue
                pct = statistics.stdev(times) / statistics.fmean(times) * 100.0
                name = f"{name_row(pair.axes, ['page', 'rtt_ms', *others])}, {arm}"
                text = f"{name} ({number(pct, 1)} %, {in_words(stated)} stated)"
                (held if agrees(stated, pct) else broken).append(text)
    if not held and not broken:
        return []  # with one load of each cell there is no deviation to compare
    what = "the standard deviation of the loads of a cell is as small as stated"
    return [check_rows(place, what, held, broken, see(reference, "spread"))]


def _gain_at(pair: Pair, gain: float, others: Sequence[str]) -> str:
    return f"{name_row(pair.axes, ['page', 'rtt_ms', *others])} ({number(gain, 1)} %)"


def name_row(axes: Axes, names: Sequence[str]) -> str:
    """The page and the RTT speak for themselves; other knobs come with their names."""
    return ", ".join(
        axis_value(n, axes.get(n))
        if n in ("page", "rtt_ms")
        else f"{axis_name(n)} {axis_value(n, axes.get(n))}"
        for n in names
    )


def _percent(spread: Spread) -> str:
    median = f"{number(spread.median, 1)} %"
    if spread.n == 1:
        return median
    return f"{median} ({number(spread.low, 1)} to {number(spread.high, 1)}, n = {spread.n})"


def _ratio(ours: float, theirs: float) -> str:
    return f"{number(ours / theirs, 2)} times as long"


def _grows(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _steps(values: Sequence[float], places: int) -> str:
    return (
        " < ".join(number(v, places) for v in values) + " %"
        if _grows(values)
        else (", ".join(number(v, places) for v in values) + " %")
    )
