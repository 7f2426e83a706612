"""Estimates with 95 % intervals that hold for few and for skewed values.

Medians: order statistics, H. A. David and H. N. Nagaraja, Order Statistics, 2003, section 7.1.
Means: the bootstrap, B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter
14.  Outliers: J. W. Tukey, Exploratory Data Analysis, 1977 (fences at 1.5 quartile ranges).  The
shift between two arms is in `analysis.stats.shift`.  Bands of distributions: A. Dvoretzky,
J. Kiefer and J. Wolfowitz, Annals of Mathematical Statistics 27, 1956, with the constant of
P. Massart, Annals of Probability 18, 1990.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 9999
SEED = 0
"""Equal values give equal intervals: the report of a folder never changes by chance."""
HUMP_SHARE = 0.05
"""Humps are further apart than this share of the median."""
LEAST_FOR_LEVEL = 6
"""From so many values on a distribution-free interval of 95 % exists."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval in the values' unit."""

    low: float
    """The lower end."""
    high: float
    """The upper end."""
    level: float = LEVEL
    """The confidence that the interval reaches, at most 0.95: with few values it is less."""

    @property
    def half_width(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2.0

    def holds(self, value: float) -> bool:
        """Return whether ``value`` is inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its confidence interval."""

    value: float
    """The estimate."""
    interval: Interval | None
    """Its confidence interval; null with too few values, or where nothing varies."""


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """Statistics of some values."""

    n: int
    """How many values there are."""
    median: Estimate
    """Their median."""
    mean: Estimate
    """Their mean."""
    outliers: int
    """How many lie outside Tukey's fences; they are kept."""


def describe_sample(values: Iterable[float]) -> SampleStatistics | None:
    """Return the statistics of ``values``, in any order; ``None`` if there are none."""
    numbers = tuple(sorted(values))
    return _describe(numbers) if numbers else None


def two_humps(values: Iterable[float]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return ``values`` as two humps, the lower one first, if they lie so; else ``None``.

    Of at least three values, two neighbours are further apart than half of the whole range and 5 %
    of the median.  A hump may be a single value: a median does not show it, and it may come again.
    """
    numbers = sorted(values)
    if len(numbers) < 3:
        return None
    gap, place = max((high - low, at) for at, (low, high) in enumerate(pairwise(numbers), start=1))
    least = max((numbers[-1] - numbers[0]) / 2.0, HUMP_SHARE * abs(statistics.median(numbers)))
    return (tuple(numbers[:place]), tuple(numbers[place:])) if gap > least else None


def without_intervals(sample: SampleStatistics) -> SampleStatistics:
    """Return ``sample`` without intervals: for values that are copies, and not random."""
    median, mean = (replace(estimate, interval=None) for estimate in (sample.median, sample.mean))
    return SampleStatistics(sample.n, median, mean, 0)


def level_of_range(n: int) -> float:
    """Return the confidence that the median lies between the least and greatest of ``n`` values.

    Each is above it with probability 1/2: all are on one side with 2 ** (1 - n).  The same holds
    for the centre of a symmetric distribution by the signed-rank test.
    """
    return 1.0 - 2.0 ** (1 - n)


def band_half_width(n: int) -> float:
    """Return how far the distribution of ``n`` values may lie from the true one, as a share.

    With probability LEVEL it lies nowhere further away (Dvoretzky, Kiefer, Wolfowitz, Massart).
    """
    return min(math.sqrt(math.log(2.0 / (1.0 - LEVEL)) / (2.0 * n)), 1.0)


@cache
def _describe(numbers: tuple[float, ...]) -> SampleStatistics:
    n = len(numbers)
    median, mean = statistics.median(numbers), statistics.fmean(numbers)
    if n == 1:
        return SampleStatistics(n, Estimate(median, None), Estimate(mean, None), 0)
    if numbers[0] == numbers[-1]:
        # Virtual time: no spread is a result, not a lack of data.
        exact = Estimate(
            numbers[0], Interval(numbers[0], numbers[0], min(LEVEL, level_of_range(n)))
        )
        return SampleStatistics(n, exact, exact, 0)
    middle = Estimate(median, median_interval(numbers))
    if n < LEAST_FOR_LEVEL:
        return SampleStatistics(n, middle, Estimate(mean, None), _outliers(numbers))
    return SampleStatistics(
        n, middle, Estimate(mean, _bootstrap_mean(numbers, mean)), _outliers(numbers)
    )


def median_interval(numbers: Sequence[float]) -> Interval:
    """Return the interval between two of the sorted ``numbers`` that contains the true median.

    Whatever they are drawn from, with ``LEVEL`` at least, or as surely as their range if there are
    few: as many lie above the median as heads fall of so many coins.
    """
    n, outside, left_out = len(numbers), 2.0 ** (1 - len(numbers)), 0
    while outside + (more := math.comb(n, left_out + 1) * 2.0 ** (1 - n)) <= 1.0 - LEVEL:
        outside, left_out = outside + more, left_out + 1
    return Interval(numbers[left_out], numbers[n - 1 - left_out], min(LEVEL, 1.0 - outside))


def _bootstrap_mean(numbers: tuple[float, ...], mean: float) -> Interval:
    """Return the BCa interval (Efron and Tibshirani, 14.3) of the mean of sorted ``numbers``.

    To the bit that of ``scipy.stats.bootstrap``, which draws and sorts resamples for each call.
    """
    # Imported here: a table of single loads needs none of it.
    import numpy
    from scipy.special import ndtr, ndtri

    values, n = numpy.array(numbers), float(len(numbers))
    means = numpy.mean(values[_resamples(len(numbers))], axis=-1)
    whole = numpy.mean(values, axis=-1)
    below = numpy.count_nonzero(means < whole) + numpy.count_nonzero(means <= whole)
    bias = ndtri(numpy.float64(below) / (2 * RESAMPLES))
    others = ~numpy.eye(len(numbers), dtype=bool)
    left_out = numpy.mean(
        numpy.broadcast_to(values, others.shape)[others].reshape(len(numbers), -1), axis=-1
    )
    apart = (n - 1) * (numpy.mean(left_out, axis=-1, keepdims=True) - left_out)
    skew = 1 / 6 * (numpy.sum(apart**3, axis=-1) / n**3)
    skew = skew / (numpy.sum(apart**2, axis=-1) / n**2) ** (3 / 2)
    tail = float(ndtri((1 - LEVEL) / 2))
    ends = [
        _quantile(means, ndtr(bias + (bias + z) / (1 - skew * (bias + z)))) for z in (tail, -tail)
    ]
    # Interpolation between resamples rounds: without this an end may pass the estimate, or the
    # sample, by the last bit.
    low = max(min(ends[0], mean), min(numbers))
    return Interval(low, min(max(ends[1], mean), max(numbers)))


@lru_cache(maxsize=4)
def _resamples(n: int) -> NDArray[Any]:
    """Return which of ``n`` values each resample has: the same for all samples of that size."""
    import numpy

    return numpy.random.default_rng(SEED).integers(0, n, (RESAMPLES, n))


def _quantile(values: NDArray[Any], share: float) -> float:
    """Return a quantile by linear interpolation between the two values that it lies between."""
    import numpy

    place = share * len(values) + (1 - share)
    if math.isnan(place):  # of a degenerate sample
        return place
    above = min(max(int(place // 1), 0), len(values) - 1)
    under = max(above - 1, 0)
    both = numpy.partition(values, (under, above))
    part = place % 1
    return float((1 - part) * both[under] + part * both[above])


def _outliers(numbers: tuple[float, ...]) -> int:
    first, _, third = statistics.quantiles(numbers, n=4, method="inclusive")
    reach = 1.5 * (third - first)
    return sum(not first - reach <= number <= third + reach for number in numbers)
