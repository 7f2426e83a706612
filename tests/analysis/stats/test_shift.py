from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.estimates import LEAST_FOR_LEVEL, Estimate, Interval
from analysis.stats.shift import (
    EXACT_UP_TO,
    Shift,
    estimate_paired_shift,
    shift_between,
    walsh_averages_outside,
)

TIMES = st.floats(1.0, 1e6, allow_nan=False).map(lambda value: round(value, 3))


def interval_of(estimate: Estimate) -> Interval:
    assert estimate.interval is not None
    return estimate.interval


def shift_of(first: list[float], second: list[float]) -> Shift:
    found = shift_between(by_block(first), by_block(second))
    assert found is not None
    return found


def by_block(times: list[float]) -> dict[tuple[int, int], float]:
    return {(seed, seed): time for seed, time in enumerate(times)}


def test_the_depression_data_of_hollander_and_wolfe() -> None:
    first = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    second = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = estimate_paired_shift(a - b for a, b in zip(first, second, strict=True))
    assert found.value == pytest.approx(0.46)
    interval = interval_of(found)
    assert (interval.low, interval.high) == pytest.approx((0.01, 0.786))


@pytest.mark.parametrize(
    ("n", "critical"),  # table of the signed-rank test, two-sided 5 %: F. Wilcoxon, 1945
    [(5, 0), (6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)],
)
def test_critical_rank_sums(n: int, critical: int) -> None:
    assert walsh_averages_outside(n) == critical


def test_the_approximation_goes_on_where_the_exact_distribution_ends() -> None:
    steps = [walsh_averages_outside(n) for n in range(EXACT_UP_TO - 3, EXACT_UP_TO + 4)]
    differences = [b - a for a, b in itertools.pairwise(steps)]
    assert max(differences) - min(differences) <= 4


def test_too_few_blocks_promise_less() -> None:
    assert estimate_paired_shift([3.0]) == Estimate(3.0, None)
    few = interval_of(estimate_paired_shift([1.0, 2.0, 4.0, 9.0, 3.0]))
    assert (few.low, few.high, few.level) == (1.0, 9.0, 0.9375)
    assert shift_of([10.0] * 5, [1.0] * 5).shown is None
    assert shift_of([10.0] * 6, [1.0] * 6).shown is True
    assert LEAST_FOR_LEVEL == 6
    with pytest.raises(ValueError, match="no differences"):
        estimate_paired_shift([])


def test_only_blocks_of_both_arms_are_compared_and_the_sign_says_who_is_sooner() -> None:
    first, second = by_block([100.0, 200.0, 400.0]), by_block([90.0, 180.0, 360.0])
    second[7, 7] = 1.0
    del first[0, 0]
    found = shift_between(first, second)
    assert found is not None
    assert (found.n, found.ms.value, found.percent.value) == (2, 30.0, 10.0)
    assert shift_between(first, {}) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_with_two_humps_in_one_arm_a_shift_may_be_anywhere_in_its_range(swapped: bool) -> None:
    humped = [1962.0, 1963.0, 1964.0, 1965.0, 1966.0, 1967.0, 3020.0, 3021.0]
    calm = [1900.0 + number for number in range(8)]
    first, second = (calm, humped) if swapped else (humped, calm)
    found, sign = shift_of(first, second).ms, -1 if swapped else 1
    assert found.value == sign * 62.0
    assert sorted((interval_of(found).low * sign, interval_of(found).high * sign)) == [62, 1114]


def test_no_spread_is_a_result() -> None:
    same = shift_of([500.0] * 8, [500.0] * 8)
    assert (same.ms.value, interval_of(same.ms).low, interval_of(same.ms).high) == (0, 0, 0)
    assert same.shown is False


@given(st.lists(TIMES, min_size=1, max_size=30))
def test_an_arm_does_not_differ_from_itself(times: list[float]) -> None:
    assert not shift_of(times, times).shown
    assert shift_of(times, times).ms.value == 0


@given(st.lists(st.tuples(TIMES, TIMES), min_size=2, max_size=30))
def test_swapping_the_arms_mirrors_the_shift(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    here, there = shift_of(first, second).ms, shift_of(second, first).ms
    assert here.value == pytest.approx(-there.value)
    assert interval_of(here).low == pytest.approx(-interval_of(there).high)
    assert interval_of(here).low <= here.value <= interval_of(here).high


@given(st.lists(TIMES, min_size=6, max_size=20), st.floats(-500, 500))
def test_a_shift_of_everything_shifts_the_estimate(times: list[float], by: float) -> None:
    before, after = estimate_paired_shift(times), estimate_paired_shift(time + by for time in times)
    assert after.value == pytest.approx(before.value + by, abs=1e-6)
    assert interval_of(after).half_width == pytest.approx(interval_of(before).half_width, abs=1e-6)


@given(st.permutations([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.6]))
def test_the_order_of_blocks_does_not_matter(differences: list[float]) -> None:
    assert estimate_paired_shift(differences) == estimate_paired_shift(sorted(differences))
