"""The verdicts on cells of the host's kernel, where chance is part of every load time.

Different needs both: a test that holds after correction over all tests of all cells, and a shift
(or a difference of the means) of the minimum effect.  Same needs the whole interval of the shift
within the minimum effect.  Anything else needs more runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Cell
from analysis.records.results import judge
from analysis.regression.compare.comparison import CellFinding, Chance, Effect, Side
from analysis.regression.compare.exact import direction_of
from analysis.regression.compare.matching import Match
from analysis.regression.compare.outcomes import describe_failures, side_of, unfounded
from analysis.stats.estimates import LEVEL
from analysis.stats.significance import (
    MOST_RUNS,
    correct,
    kolmogorov_smirnov,
    least_chance,
    mann_whitney,
    more_failures,
    runs_to_narrow,
    runs_to_show,
    widening,
)
from analysis.stats.twosample import estimate_shift

RANKS = "mann_whitney"
DISTANCE = "kolmogorov_smirnov"
FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What decides: the chance of error over all ``tests``, and the minimum effect in percent."""

    alpha: float
    min_effect_pct: float
    tests: int


@dataclass(frozen=True, slots=True)
class _Tested:
    """A cell with load times on both sides, and the p of each of its tests."""

    match: Match
    base: Side
    new: Side
    effect: Effect
    chances: dict[str, float]


def judge_by_chance(
    matches: Sequence[Match], alpha: float, min_effect_pct: float
) -> list[CellFinding]:
    """Judge all cells together, since the correction is over all of them; in their order."""
    drafts = [unfounded(match) or _test(match) for match in matches]
    tests = [(i, name) for i, one in enumerate(drafts) if isinstance(one, _Tested)
             for name in one.chances]  # fmt: skip
    raw = [one.chances[name] for i, name in tests if isinstance(one := drafts[i], _Tested)]
    corrected = dict(zip(tests, correct(raw), strict=True))
    bounds = Bounds(alpha, min_effect_pct, len(tests))
    return [
        _conclude(
            one,
            {name: Chance(p, corrected[i, name]) for name, p in one.chances.items()},
            bounds,
        )
        if isinstance(one, _Tested)
        else one
        for i, one in enumerate(drafts)
    ]


def _test(match: Match) -> _Tested:
    base, new = side_of(match.base), side_of(match.new)
    if base is None or new is None or base.median_ms is None:  # unfounded() has seen to it
        raise ValueError("a cell without load times cannot be tested")
    chances = {
        RANKS: mann_whitney(base.plt_ms, new.plt_ms),
        DISTANCE: kolmogorov_smirnov(base.plt_ms, new.plt_ms),
    }
    counts = _counts(match.base), _counts(match.new)
    if counts[0][1] or counts[1][1]:
        # Given how many failed in both together, which Fisher's test is about anyway.
        chances[FAILURES] = more_failures(*counts)
    shift = estimate_shift(base.plt_ms, new.plt_ms)
    effect = Effect(
        shift.value,
        shift.value / base.median_ms * 100.0 if base.median_ms > 0 else None,
        statistics.fmean(new.plt_ms) - statistics.fmean(base.plt_ms),
        shift.interval,
    )
    return _Tested(match, base, new, effect, chances)


def _counts(cell: Cell | None) -> tuple[int, int]:
    """Proven and other records; trials that never ran are nobody's failure."""
    outcomes = [judge(record)[0] == "ok" for record in cell.records] if cell else []
    return outcomes.count(True), outcomes.count(False)


def _conclude(one: _Tested, chances: dict[str, Chance], bounds: Bounds) -> CellFinding:
    effect, least_ms = one.effect, (one.base.median_ms or 0.0) * bounds.min_effect_pct / 100.0
    shown = [name for name, chance in chances.items() if chance.corrected <= bounds.alpha]
    axes, sides = one.match.axes, (one.base, one.new)
    if FAILURES in shown and one.match.new is not None:
        reason = f"more loads fail in NEW: {describe_failures(one.match.new.records)}"
        return CellFinding(axes, "different", reason, *sides, "changed", effect, chances)
    times = [name for name in shown if name != FAILURES]
    largest = max(effect.ms, effect.mean_ms, key=abs)
    if times and abs(largest) >= least_ms and largest:
        what = "load times shifted" if abs(effect.ms) >= least_ms else _stalled(effect)
        reason = f"{what}, and chance alone does so at p = {_least(chances, times):.2g}"
        seen = effect if abs(effect.ms) >= least_ms else Effect(effect.mean_ms, None, 0.0)
        return CellFinding(axes, "different", reason, *sides, direction_of(seen), effect, chances)
    n, m = len(one.base.plt_ms), len(one.new.plt_ms)
    if least_chance(n, m) * bounds.tests > bounds.alpha:
        more = max(1, runs_to_show(bounds.tests, bounds.alpha) - min(n, m))
        reason = (
            f"{n} and {m} loads cannot show any difference among {bounds.tests} tests; "
            f"{more} more on each side can"
        )
        return CellFinding(
            axes, "inconclusive", reason, *sides, None, effect, chances, more_runs=more
        )
    interval = effect.interval_ms
    if interval and interval.level >= LEVEL and max(-interval.low, interval.high) <= least_ms:
        reason = f"the shift's interval is within {bounds.min_effect_pct:g} %"
        reason += "; the distributions differ, by less than that" * bool(times)
        return CellFinding(axes, "same", reason, *sides, None, effect, chances)
    more_runs, reason = _ask_for_more(one, least_ms, bounds)
    return CellFinding(
        axes, "inconclusive", reason, *sides, None, effect, chances, more_runs=more_runs
    )


def _ask_for_more(one: _Tested, least_ms: float, bounds: Bounds) -> tuple[int | None, str]:
    """How many more runs on each side the interval needs to decide, one way or the other."""
    n, m = len(one.base.plt_ms), len(one.new.plt_ms)
    shift, interval = one.effect.ms, one.effect.interval_ms
    half = interval.half_width if interval else 0.0
    if abs(shift) < least_ms:
        needed = runs_to_narrow(n, m, half, least_ms - abs(shift))
        so_far = f"the shift is below {bounds.min_effect_pct:g} % and its interval is not"
    else:
        needed = runs_to_narrow(n, m, half * widening(bounds.tests, bounds.alpha), abs(shift))
        so_far = "the shift is not significant"
    if needed is None:
        return None, f"{so_far}; more than {MOST_RUNS} runs would be needed"
    more = max(1, needed - min(n, m))
    return more, f"{so_far}; about {more} more on each side would tell"


def _stalled(effect: Effect) -> str:
    return f"some loads stall or no longer do (the mean moved by {effect.mean_ms:+.1f} ms)"


def _least(chances: dict[str, Chance], names: Sequence[str]) -> float:
    return min(chances[name].corrected for name in names)
