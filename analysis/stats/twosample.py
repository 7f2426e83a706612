"""Shift between two independent samples: Hodges and Lehmann's estimate with its interval.

It is the median of all differences between a value of one and a value of the other; its interval
is Moses', from the rank-sum test: M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric
Statistical Methods, 3rd edition 2014, sections 4.2 and 4.3.  The paired one is in
`analysis.stats.shift`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from analysis.stats.estimates import LEVEL, Estimate, Interval

EXACT_UP_TO = 2500
"""Beyond so many differences the normal approximation of the rank sum is as good."""


def estimate_unpaired_shift(base: Sequence[float], new: Sequence[float]) -> Estimate:
    """Return by how much values of ``new`` are above those of ``base``, in their unit.

    With too few values the interval is the widest there is, at a lower level; with one in each
    there is none.  Ties make it a little wider than its level calls for; no spread at all makes it
    a point.

    Raises:
        ValueError: a sample is empty.
    """
    if not base or not new:
        raise ValueError("no shift without two samples")
    # Imported here: an exact comparison needs none of it.
    import numpy

    differences = numpy.sort(numpy.subtract.outer(new, base), axis=None)
    value = float(numpy.median(differences))
    level = level_of_extremes(len(base), len(new))
    if level <= 0.0:
        return Estimate(value, None)
    drop = differences_outside(*sorted((len(base), len(new))))
    low, high = float(differences[drop]), float(differences[-1 - drop])
    return Estimate(value, Interval(low, high, min(LEVEL, level)))


def level_of_extremes(n: int, m: int) -> float:
    """Return the confidence that the shift lies between the least and the greatest difference.

    It is outside only when all values of one sample are on one side of the other's: of all ways
    to order them, two.
    """
    return 1.0 - 2.0 / math.comb(n + m, n)


@cache
def differences_outside(n: int, m: int) -> int:
    """Return how many of the ``n * m`` differences are outside of the interval on each side.

    The greatest rank-sum statistic that is not exceeded with a probability of 2.5 % at most; 0
    when there is none.
    """
    tail = (1.0 - LEVEL) / 2.0
    if n * m > EXACT_UP_TO:
        from scipy import stats

        spread = math.sqrt(n * m * (n + m + 1) / 12.0)
        return int(n * m / 2.0 - 0.5 + stats.norm.ppf(tail) * spread)
    most = tail * math.comb(n + m, n)
    total, drop = 0, -1
    for ways in _orders(n, m):
        total += ways
        if total > most:
            break
        drop += 1
    return max(0, drop)


def _orders(n: int, m: int) -> list[int]:
    """Return how many orders give each rank-sum statistic 0..n*m (Gaussian binomial)."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways
