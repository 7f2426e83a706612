"""The shift between two samples, against textbook values and by its properties."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.estimates import Interval
from analysis.stats.twosample import (
    EXACT_UP_TO,
    differences_outside,
    estimate_unpaired_shift,
    level_of_extremes,
)

TIMES = st.lists(st.floats(1.0, 1e5).map(lambda value: round(value, 2)), min_size=2, max_size=15)


def interval_of(base: list[float], new: list[float]) -> Interval:
    interval = estimate_unpaired_shift(base, new).interval
    assert interval is not None
    return interval


def test_the_permeability_data_of_hollander_and_wolfe() -> None:
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = estimate_unpaired_shift(early, term)
    assert found.value == pytest.approx(0.305)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.15, 0.76))


@pytest.mark.parametrize(
    ("n", "m", "critical"),  # table of the rank-sum test, two-sided 5 %: D. Auble, 1953
    [(4, 4, 0), (5, 5, 2), (5, 10, 8), (8, 8, 13), (10, 10, 23), (15, 15, 64), (20, 20, 127)],
)
def test_critical_values(n: int, m: int, critical: int) -> None:
    assert differences_outside(n, m) == critical


def test_the_approximation_goes_on_where_the_exact_distribution_ends() -> None:
    side = math.isqrt(EXACT_UP_TO)
    steps = [differences_outside(n, n) / n**2 for n in range(side - 2, side + 4)]
    assert max(steps) - min(steps) < 0.01


def test_few_values_promise_less() -> None:
    assert estimate_unpaired_shift([100.0], [103.0]).interval is None
    assert interval_of([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]) == Interval(8.0, 12.0, 0.9)
    assert level_of_extremes(4, 4) > 0.95
    with pytest.raises(ValueError, match="two samples"):
        estimate_unpaired_shift([], [1.0])


def test_no_spread_makes_a_point() -> None:
    assert interval_of([100.0] * 8, [100.0] * 8) == Interval(0.0, 0.0)
    assert interval_of([100.0] * 8, [110.0] * 8) == Interval(10.0, 10.0)


@given(TIMES, TIMES)
def test_swapping_mirrors(base: list[float], new: list[float]) -> None:
    here, there = estimate_unpaired_shift(base, new), estimate_unpaired_shift(new, base)
    assert here.value == pytest.approx(-there.value)
    if here.interval is not None and there.interval is not None:
        assert here.interval.low == pytest.approx(-there.interval.high)
        assert here.interval.low <= here.value <= here.interval.high


def test_the_interval_holds_the_shift_as_often_as_it_says() -> None:
    dice = random.Random(1)  # noqa: S311
    held = 0
    for _ in range(400):
        base = [dice.lognormvariate(7.0, 0.1) for _ in range(9)]
        new = [dice.lognormvariate(7.0, 0.1) + 25.0 for _ in range(11)]
        held += interval_of(base, new).holds(25.0)
    assert held >= 400 * 0.93
