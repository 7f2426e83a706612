"""The tests of two samples, and the correction over many."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.stats.significance import (
    correct,
    kolmogorov_smirnov,
    least_p,
    mann_whitney,
    more_failures,
    runs_to_narrow,
    runs_to_show,
    widening,
)

LOW, HIGH = [1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]


def test_samples_apart_are_as_significant_as_can_be() -> None:
    assert mann_whitney(LOW, HIGH) == pytest.approx(least_p(5, 5))
    assert kolmogorov_smirnov(LOW, HIGH) == pytest.approx(least_p(5, 5))
    assert least_p(5, 5) == pytest.approx(2 / 252)


def test_no_spread_is_data() -> None:
    assert mann_whitney([7.0] * 5, [7.0] * 5) == 1.0
    assert kolmogorov_smirnov([7.0] * 5, [7.0] * 5) == 1.0
    assert mann_whitney([7.0] * 5, [8.0] * 5) == pytest.approx(2 / 252)
    assert mann_whitney([7.0], [8.0]) == 1.0
    assert kolmogorov_smirnov([7.0], [7.0]) == 1.0


@pytest.mark.parametrize(("base", "new"), [
    ([1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 4.0, 4.0, 5.0]),
    ([1.0, 1.0, 1.0], [1.0, 1.0, 2.0]),
    ([5.0], [1.0, 1.0, 2.0]),
])  # fmt: skip
def test_tied_ranks_against_every_order(base: list[float], new: list[float]) -> None:
    values = stats.rankdata(base + new)
    mean = len(new) * (len(values) + 1) / 2
    far = abs(sum(values[len(base) :]) - mean)
    sums = [sum(chosen) for chosen in itertools.combinations(values, len(new))]
    expected = sum(abs(one - mean) >= far - 1e-9 for one in sums) / len(sums)
    assert mann_whitney(base, new) == pytest.approx(expected)
    assert mann_whitney(new, base) == pytest.approx(expected)


def test_only_the_distance_sees_a_wider_spread() -> None:
    narrow = [100.0 + i * 0.01 for i in range(-10, 11)]
    wide = [100.0 + i * 5.0 for i in range(-10, 11)]
    assert mann_whitney(narrow, wide) > 0.5
    assert kolmogorov_smirnov(narrow, wide) < 0.05


def test_failures() -> None:
    assert more_failures((20, 0), (20, 0)) == 1.0
    assert more_failures((20, 0), (10, 10)) < 0.001
    assert more_failures((10, 10), (20, 0)) == 1.0
    assert more_failures((20, 0), (19, 1)) == pytest.approx(0.5)


def test_holm_by_hand() -> None:
    assert correct([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct([0.5, 0.9]) == [1.0, 1.0]
    assert correct([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_between_nothing_and_bonferroni(chances: list[float]) -> None:
    for p, corrected in zip(chances, correct(chances), strict=True):
        assert p <= corrected <= min(1.0, p * len(chances)) + 1e-12


@given(st.integers(1, 200))
def test_runs_to_show_are_the_fewest(tests: int) -> None:
    needed = runs_to_show(tests, 0.05)
    assert least_p(needed, needed) * tests <= 0.05
    assert least_p(needed - 1, needed - 1) * tests > 0.05


def test_runs_to_narrow() -> None:
    assert runs_to_narrow(10, 10, 4.0, 2.0) == 40
    assert runs_to_narrow(10, 10, 0.0, 2.0) == 0
    assert runs_to_narrow(10, 10, 4.0, 0.0) is None
    assert runs_to_narrow(10, 10, 4.0, 0.01) is None
    assert runs_to_narrow(5, 1000, 2.0, 2.0) == math.ceil(2 / (1 / 5 + 1 / 1000))


def test_more_tests_need_wider_intervals() -> None:
    assert widening(1, 0.05) == pytest.approx(1.0)
    assert widening(24, 0.05) > widening(2, 0.05) > 1.0
