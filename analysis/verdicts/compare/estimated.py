"""Verdicts on cells of the host's kernel, where chance is part of every load time.

Different needs both: a test that holds after correction over all tests of all cells, and a shift
(or a difference of the means) of the minimum effect.  Same needs the whole interval of the shift
within the minimum effect.  Anything else needs more runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Cell
from analysis.records.metric import Metric
from analysis.records.results import judge
from analysis.stats.estimates import LEVEL
from analysis.stats.significance import (
    MOST_RUNS,
    correct,
    kolmogorov_smirnov,
    least_p,
    mann_whitney,
    more_failures,
    runs_to_narrow,
    runs_to_show,
    widening,
)
from analysis.verdicts.compare.comparison import (
    CellFinding,
    Direction,
    Effect,
    Significance,
    Verdict,
)
from analysis.verdicts.compare.matching import BothSides, Match, both_sides, describe_failures

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
    """A cell with numbers on both sides, and the p of each of its tests."""

    both: BothSides
    effect: Effect
    p_values: dict[str, float]

    @property
    def n(self) -> tuple[int, int]:
        """Numbers on both sides."""
        base, new = self.both.sides
        return len(base.values), len(new.values)

    @property
    def metric(self) -> Metric:
        """What the numbers are of."""
        return self.both.cells[0].metric


def judge_by_tests(
    matches: Sequence[Match], alpha: float, min_effect_pct: float
) -> list[CellFinding]:
    """Judge all cells together, since the correction is over all of them; in their order."""
    drafts = [_test(match) for match in matches]
    tests = [(i, name) for i, draft in enumerate(drafts) if isinstance(draft, _Tested)
             for name in draft.p_values]  # fmt: skip
    raw = [draft.p_values[name] for i, name in tests if isinstance(draft := drafts[i], _Tested)]
    corrected = dict(zip(tests, correct(raw), strict=True))
    bounds = Bounds(alpha, min_effect_pct, len(tests))
    findings: list[CellFinding] = []
    for i, draft in enumerate(drafts):
        if isinstance(draft, _Tested):
            found = {n: Significance(p, corrected[i, n]) for n, p in draft.p_values.items()}
            draft = _conclude(draft, found, bounds)
        findings.append(draft)
    return findings


def _test(match: Match) -> _Tested | CellFinding:
    both = both_sides(match)
    if isinstance(both, CellFinding):
        return both
    base, new = (side.values for side in both.sides)
    p_values = {RANKS: mann_whitney(base, new), DISTANCE: kolmogorov_smirnov(base, new)}
    counts = [_counts(cell) for cell in both.cells]
    if counts[0][1] or counts[1][1]:
        # Given how many failed in both together, which Fisher's test is about anyway.
        p_values[FAILURES] = more_failures(*counts)
    return _Tested(both, Effect.unpaired(base, new, both.base_ms), p_values)


def _counts(cell: Cell) -> tuple[int, int]:
    """Proven and other records; trials that never ran have not failed."""
    outcomes = [judge(record)[0] == "ok" for record in cell.records]
    return outcomes.count(True), outcomes.count(False)


def _conclude(tested: _Tested, found: dict[str, Significance], bounds: Bounds) -> CellFinding:
    effect, metric = tested.effect, tested.metric
    least_ms = max(tested.both.base_ms * bounds.min_effect_pct / 100.0, metric.grain)

    def finding(
        verdict: Verdict, reason: str, direction: Direction | None = None, more: int | None = None
    ) -> CellFinding:
        axes, sides = tested.both.axes, tested.both.sides
        return CellFinding(axes, verdict, reason, *sides, direction, effect, found, more_runs=more)

    shown = [name for name, test in found.items() if test.corrected <= bounds.alpha]
    if FAILURES in shown:
        failed = describe_failures(tested.both.cells[1].records)
        return finding("different", f"more loads fail in NEW: {failed}", "changed")
    times = [found[name].corrected for name in shown]
    largest = max(effect.ms, effect.mean_ms, key=abs)
    if times and abs(largest) >= least_ms and largest:
        chance = f"chance alone does so at p = {min(times):.2g}"
        if abs(effect.ms) >= least_ms:
            return finding("different", f"{metric.words} shifted, and {chance}", effect.direction)
        moved = metric.with_unit(f"{effect.mean_ms:+.{metric.places}f}")
        stalled = f"some loads stall or no longer do (the mean moved by {moved})"
        seen = Effect(effect.mean_ms, None, 0.0)
        return finding("different", f"{stalled}, and {chance}", seen.direction)
    n, m = tested.n
    if least_p(n, m) * bounds.tests > bounds.alpha:
        more = max(1, runs_to_show(bounds.tests, bounds.alpha) - min(n, m))
        reason = f"{n} and {m} loads cannot show any difference among {bounds.tests} tests"
        return finding("inconclusive", f"{reason}; {more} more on each side can", more=more)
    interval = effect.interval_ms
    if interval and interval.level >= LEVEL and max(-interval.low, interval.high) <= least_ms:
        reason = f"the shift's interval is within {bounds.min_effect_pct:g} %"
        return finding(
            "same", reason + "; the distributions differ, by less than that" * bool(times)
        )
    more_runs, reason = _ask_for_more(tested, least_ms, bounds)
    return finding("inconclusive", reason, more=more_runs)


def _ask_for_more(tested: _Tested, least_ms: float, bounds: Bounds) -> tuple[int | None, str]:
    """How many more runs on each side the interval needs to decide, one way or the other."""
    n, m = tested.n
    shift, interval = tested.effect.ms, tested.effect.interval_ms
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
