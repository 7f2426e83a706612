"""Intervals, with simulated load times that are as skewed as real ones."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from analysis.stats.estimates import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    SampleStatistics,
    band_half_width,
    describe_sample,
    two_humps,
)
from analysis.stats.shift import estimate_paired_shift

SIMULATIONS = 1000
MEDIAN_MS = 1100.0
Times = numpy.typing.NDArray[numpy.float64]


def skewed(seed: int, runs: int, n: int) -> Times:
    """Load times of 1 s and something with a long tail (lognormal), one row for each run."""
    chance = numpy.random.default_rng(seed)
    return 1000.0 + 100.0 * chance.lognormal(0.0, 1.0, (runs, n))


def describe(values: list[float]) -> SampleStatistics:
    sample = describe_sample(values)
    assert sample is not None
    return sample


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_five_values_have_a_range_and_six_an_interval() -> None:
    few, enough = (describe([1.0, 2.0, 4.0, 8.0, 16.0, 32.0][:n]) for n in (5, 6))
    assert (few.median.interval, few.mean.interval) == (Interval(1.0, 16.0, 0.9375), None)
    assert enough.median.interval is not None and enough.mean.interval is not None
    assert enough.median.interval.level == enough.mean.interval.level == 0.95


def test_the_interval_of_a_skewed_mean_is_skewed_too() -> None:
    """Further up than percentiles of resampled means reach (Efron and Tibshirani, chapter 14)."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0]
    means = numpy.random.default_rng(1).choice(values, (9999, len(values))).mean(axis=1)
    low, high = numpy.percentile(means, [2.5, 97.5])
    interval = describe(values).mean.interval
    assert interval is not None
    assert interval.low > low + 0.1 and interval.high > high + 5.0


@pytest.mark.parametrize(("last", "outliers"), [(6.0, 0), (6.5, 1), (-2.5, 1)])
def test_fences_are_one_and_a_half_quartile_ranges_off(last: float, outliers: int) -> None:
    """Of five values the quartiles are the second and the fourth: 1 and 3."""
    rest = [0.0, 1.0, 2.0, 3.0] if last > 0 else [1.0, 2.0, 3.0, 4.0]
    assert describe([*rest, last]).outliers == outliers


@pytest.mark.parametrize(("values", "lower"), [
    ([1000.0, 1050.0, 1110.0], 2),
    ([1000.0, 1055.0, 1110.0], None),  # half of the range is not more than that
    ([1000.0, 1001.0, 1052.0], 2),
    ([1000.0, 1001.0, 1050.0], None),  # less than 5 % of the median apart
    ([1000.0, 2000.0], None),
])  # fmt: skip
def test_humps_are_further_apart_than_half_of_all(values: list[float], lower: int | None) -> None:
    expected = None if lower is None else (tuple(values[:lower]), tuple(values[lower:]))
    assert two_humps(reversed(values)) == expected


@pytest.mark.nightly(but="^6$")
@pytest.mark.parametrize("n", [6, 10, pytest.param(21, marks=pytest.mark.slow)])
def test_intervals_of_medians_hold_as_often_as_they_promise(n: int) -> None:
    found = [describe(row.tolist()).median.interval for row in skewed(n, SIMULATIONS, n)]
    covered = share([interval is not None and interval.holds(MEDIAN_MS) for interval in found])
    assert 0.94 <= covered <= 0.995


def test_the_range_of_few_values_holds_as_often_as_its_level_says() -> None:
    found = [describe(row.tolist()).median.interval for row in skewed(3, SIMULATIONS, 3)]
    assert {interval.level for interval in found if interval} == {0.75}
    assert share([i is not None and i.holds(MEDIAN_MS) for i in found]) == pytest.approx(
        0.75, abs=0.04
    )


def test_intervals_of_means_hold_less_often_where_values_are_skewed() -> None:
    true = 1000.0 + 100.0 * math.exp(0.5)
    found = [describe(row.tolist()).mean.interval for row in skewed(40, 300, 40)]
    assert 0.86 <= share([i is not None and i.holds(true) for i in found]) <= 0.97


@pytest.mark.parametrize("n", [6, 10, 30])
def test_two_equal_arms_differ_in_one_of_twenty_runs(n: int) -> None:
    first, second = skewed(1, SIMULATIONS, n), skewed(2, SIMULATIONS, n)
    found = [estimate_paired_shift(row.tolist()).interval for row in first - second]
    false_alarms = share([interval is None or not interval.holds(0.0) for interval in found])
    assert 0.02 <= false_alarms <= 0.065


def test_the_interval_of_a_shift_holds_the_shift_under_drift() -> None:
    """The machine gets slower block by block: pairs within a block do not notice."""
    drift = numpy.linspace(0.0, 2000.0, 12)
    first, second = (skewed(seed, SIMULATIONS, 12) + drift for seed in (3, 4))
    found = [estimate_paired_shift(row.tolist()).interval for row in first - (second - 80.0)]
    assert 0.93 <= share([i is not None and i.holds(80.0) for i in found]) <= 0.98


def test_one_value_has_no_interval_and_none_has_no_sample() -> None:
    one = describe([1234.5])
    assert (one.n, one.median.value, one.mean.value, one.outliers) == (1, 1234.5, 1234.5, 0)
    assert one.median.interval is one.mean.interval is None
    assert describe_sample([]) is None


def test_no_spread_is_an_interval_without_width() -> None:
    same = describe([600.0] * 7)
    assert same.median.interval == same.mean.interval == Interval(600.0, 600.0)
    assert describe([600.0] * 2).median.interval == Interval(600.0, 600.0, 0.5)


def test_outliers_are_counted_and_kept() -> None:
    sample = describe([100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 400.0])
    assert (sample.n, sample.outliers) == (7, 1)
    assert sample.mean.value == pytest.approx(145.0)
    assert sample.median.value == 103.0


@example([1.0] * 4 + [887001.0855020426] * 2)  # rounding led beyond the greatest
@example(
    [
        7.0,
        4892.17,
        717.934121101788,
        717.934121101788,
        91706.05445705335,
        91706.05445705335,
        717.934121101788,
    ]
)  # and the low end beyond the median
@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=12))
def test_order_does_not_matter_and_the_median_is_inside(values: list[float]) -> None:
    sample = describe(values)
    assert sample == describe(values[::-1])
    interval = sample.median.interval
    assert interval is not None
    assert min(values) <= interval.low <= sample.median.value <= interval.high <= max(values)


@pytest.mark.parametrize("n", [4, 6, 20])
def test_a_band_holds_the_true_distribution_as_often_as_it_says(n: int) -> None:
    ordered = numpy.sort(numpy.random.default_rng(n).random((20_000, n)), axis=1)
    steps = numpy.arange(n + 1) / n
    above, below = (steps[1:] - ordered).max(axis=1), (ordered - steps[:-1]).max(axis=1)
    held = numpy.mean(numpy.maximum(above, below) <= band_half_width(n))
    assert 0.948 < held < 0.98


@pytest.mark.parametrize("n", [6, 7, 20, 33])
def test_the_interval_of_a_mean_is_that_of_scipy_to_the_bit(n: int) -> None:
    for seed, scale in enumerate((1.0, 0.01, 1e4)):
        times = numpy.sort(skewed(seed, 1, n)[0] * scale)
        there = stats.bootstrap((times,), numpy.mean, n_resamples=RESAMPLES, confidence_level=LEVEL,
                                method="BCa",
                                rng=numpy.random.default_rng(SEED)).confidence_interval  # fmt: skip
        interval = describe([float(each) for each in times]).mean.interval
        assert interval is not None
        assert (interval.low, interval.high) == (float(there.low), float(there.high))
