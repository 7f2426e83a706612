"""Verdicts on cells in virtual and in real time: a tolerance, and what accounts for more.

What real time adds to a page load is bounded by what was measured: computing by the browser's own
account, the link by its calibration and lateness, timers by the kernel's slack (PR_SET_TIMERSLACK
in prctl(2)).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

from analysis.records.cells import Cell
from analysis.records.metric import PLT
from analysis.stats.estimates import LEVEL, Interval, describe_sample
from analysis.verdicts.compare.comparison import CellFinding, Clocks, Effect, Timing, Verdict
from analysis.verdicts.compare.matching import Match, both_sides
from testbed.model import PageLoad, Record

TIMER_SLACK_MS = 0.05
LINK_PROPERTIES = {"rtt": 1.0, "down_rate": -1.0, "up_rate": -1.0}
"""What of the link decides a load time, and whether more of it makes loads longer (1) or not."""

Word = Literal["agrees", "explained", "differs", "unclear"]
VERDICTS: dict[Word, Verdict] = {"agrees": "same", "explained": "same", "differs": "different",
                                 "unclear": "inconclusive"}  # fmt: skip
REASONS: dict[str, str] = {
    "agrees": "the {} are within {:g} %",
    "explained": "the {} are not within {:g} %, and the browser computed for long enough "
    "to account for it",
    "differs": "the {} are not within {:g} %, and nothing that was measured accounts for it",
    "unclear": "the intervals are too wide to say whether the {} are within {:g} %: run "
    "more repetitions",
}


def judge_by_tolerance(match: Match, tolerance_pct: float) -> CellFinding:
    """Say whether the kernels agree within the tolerance, or computing accounts for the rest.

    The difference of the medians has an interval from the lower end of one minus the upper end of
    the other, and the reverse: wider than need be, and without any assumption.
    """
    both = both_sides(match)
    if isinstance(both, CellFinding):
        return replace(both, verdict="inconclusive", direction=None, word="no number")
    clocks = clocks_of(both.cells)
    base, new = (describe_sample(side.values) for side in both.sides)
    if base is None or new is None:
        raise ValueError("a cell without numbers cannot be judged")
    ours, theirs = (
        sample.median.interval or Interval(sample.median.value, sample.median.value, 0.0)
        for sample in (base, new)
    )
    low, high = theirs.low - ours.high, theirs.high - ours.low
    level = min(
        (interval.level for interval in (base.median.interval, new.median.interval) if interval),
        default=None,
    )
    likely, reference = new.median.value - base.median.value, base.median.value
    effect = Effect(
        likely,
        likely / reference * 100.0 if reference > 0 else None,
        new.mean.value - base.mean.value,
        Interval(low, high, min(level, LEVEL)) if level is not None else None,
    )
    metric = both.cells[0].metric
    tolerance = max(reference * tolerance_pct / 100.0, metric.grain)
    computing = (clocks.cpu_ms or 0.0) if metric.unit == "ms" else 0.0
    word = _weigh(low, high, tolerance, computing)
    reason = REASONS[word].format(metric.words, tolerance_pct)
    return CellFinding(both.axes, VERDICTS[word], reason, *both.sides,
                       effect.direction if word == "differs" else None, effect, word=word,
                       clocks=clocks)  # fmt: skip


def clocks_of(cells: tuple[Cell, Cell]) -> Clocks:
    """Return what both kernels measured of a cell; only loads that count are looked at."""
    ours, theirs = map(_timing, cells)
    slowness = [
        sign * (theirs.link[name] / ours.link[name] - 1.0)
        for name, sign in LINK_PROPERTIES.items()
        if ours.link.get(name) and theirs.link.get(name)
    ]
    load_ms = ours.plt_ms.median.value if ours.plt_ms else 0.0
    return Clocks(ours, theirs,
                  None if theirs.main_ms is None else theirs.main_ms - (ours.main_ms or 0.0),
                  max(0.0, *slowness, 0.0) * load_ms, theirs.requests * TIMER_SLACK_MS)  # fmt: skip


def unwaited_ms(record: Record) -> float | None:
    """Return how long of a load no request was under way: only computing can have taken it."""
    load = record.measured_as(PageLoad)
    if load is None:
        return None
    waited, until = 0.0, 0.0
    for start, end in sorted((r.start_ms, r.end_ms) for r in load.requests):
        start, end = max(start, until), min(end, load.plt_ms)
        waited += max(0.0, end - start)
        until = max(until, end)
    return load.plt_ms - waited


def _weigh(low: float, high: float, tolerance: float, computing: float) -> Word:
    """The verdict on a difference between ``low`` and ``high``; all in the metric's unit."""
    most = tolerance + computing
    if -tolerance <= low and high <= tolerance:
        return "agrees"
    if low > most or high < -tolerance:
        return "differs"
    return "explained" if computing and -tolerance <= low and high <= most else "unclear"


def _timing(cell: Cell) -> Timing:
    records = cell.proven
    loads = (record.measured_as(PageLoad) for record in records)
    measured: dict[str, list[float]] = {}
    for record in records:
        for measurement in record.lab.measurements if record.lab is not None else ():
            measured.setdefault(measurement.name, []).append(measurement.measured)
    worst, mean = (
        [record.machine[name] for record in records if name in record.machine]
        for name in ("worst_lateness_ms", "mean_lateness_ms")
    )
    return Timing(
        plt_ms=describe_sample(cell.by(PLT).by_seed.values()),
        main_ms=_median(records, lambda r: _browser_ms(r, "task_s")),
        all_ms=_median(records, lambda r: _browser_ms(r, "load_cpu_s")),
        unwaited_ms=_median(records, unwaited_ms),
        requests=max((len(load.requests) for load in loads if load is not None), default=0),
        link={name: statistics.median(values) for name, values in measured.items()},
        worst_lateness_ms=max(worst, default=None),
        mean_lateness_ms=statistics.fmean(mean) if mean else None,
    )


def _browser_ms(record: Record, name: str) -> float | None:
    load = record.measured_as(PageLoad)
    if load is None or name not in load.browser:
        return None
    return load.browser[name] * 1000.0


def _median(records: Iterable[Record], ask: Callable[[Record], float | None]) -> float | None:
    values = [value for value in map(ask, records) if value is not None]
    return statistics.median(values) if values else None
