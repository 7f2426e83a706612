"""Significance tests: do two samples come from one distribution?

Rank-sum test: H. B. Mann and D. R. Whitney, 1947.  Largest distance of the distributions: A. N.
Kolmogorov and N. V. Smirnov.  Failures: R. A. Fisher's exact test.  Correction over many tests:
S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

NORMAL_FROM = 9
"""From so many values in each sample on the normal approximation holds, with ties as well."""
MOST_RUNS = 1000
"""More runs than this are not asked for by number."""


def mann_whitney(base: Sequence[float], new: Sequence[float]) -> float:
    """Return the two-sided p that one sample's values tend to be above; 1 without spread."""
    values = {*base, *new}
    if len(values) == 1:
        return 1.0
    # Imported here: an exact comparison needs none of it, and it takes 0.7 s.
    from scipy import stats

    if len(values) < len(base) + len(new) and min(len(base), len(new)) < NORMAL_FROM:
        return _chance(_tied_ranks(base, new))
    return _chance(stats.mannwhitneyu(new, base, alternative="two-sided", method="auto").pvalue)


def kolmogorov_smirnov(base: Sequence[float], new: Sequence[float]) -> float:
    """Return the two-sided p that both have one distribution; with ties it is lower still."""
    from scipy import stats

    return _chance(stats.ks_2samp(base, new, method="auto").pvalue)


def more_failures(base: tuple[int, int], new: tuple[int, int]) -> float:
    """Return the one-sided p that loads fail more often in ``new``; each is (proven, not)."""
    from scipy import stats

    table = [[base[0], base[1]], [new[0], new[1]]]
    return _chance(stats.fisher_exact(table, alternative="greater").pvalue)


def correct(p_values: Sequence[float]) -> list[float]:
    """Return Holm's correction: a value of at most alpha errs in a share alpha of families."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = least
    return corrected


def least_p(n: int, m: int) -> float:
    """Return the least p of ``n`` and ``m`` values: all of one above all of the other."""
    return min(1.0, 2.0 / math.comb(n + m, n))


def runs_to_show(tests: int, alpha: float) -> int:
    """Return how many runs on each side show some difference among ``tests`` tests."""
    needed = 1
    while least_p(needed, needed) * tests > alpha:
        needed += 1
    return needed


def runs_to_narrow(n: int, m: int, half_width: float, target: float) -> int | None:
    """Return how many runs on each side give an interval of half-width ``target``.

    The width falls with the root of the number of runs.  ``None``: more than MOST_RUNS.
    """
    now = 2.0 / (1.0 / n + 1.0 / m)
    if target <= 0.0 or half_width / target > math.sqrt(MOST_RUNS / now):
        return None
    return math.ceil(now * (half_width / target) ** 2)


def widening(tests: int, alpha: float) -> float:
    """Return by how much an interval must be wider to hold ``tests`` times at once (Bonferroni)."""
    from scipy import stats

    return float(stats.norm.ppf(alpha / (2.0 * tests)) / stats.norm.ppf(alpha / 2.0))


def _tied_ranks(base: Sequence[float], new: Sequence[float]) -> float:
    """Return the chance of a rank sum as far from its mean, over all ways to deal these ranks.

    scipy has this only without ties, and by trying every way.
    """
    import numpy
    from scipy import stats

    few, many = sorted((base, new), key=len)
    # Ties share their mean rank: twice a rank is a whole number.
    ranks = (2 * stats.rankdata([*few, *many])).astype(int)
    sums = numpy.zeros((len(few) + 1, int(ranks.sum()) + 1))
    sums[0, 0] = 1.0
    for rank in ranks:
        sums[1:, rank:] += sums[:-1, :-rank].copy()
    mean = len(few) * (len(ranks) + 1)
    away = abs(numpy.arange(sums.shape[1]) - mean) >= abs(int(ranks[: len(few)].sum()) - mean)
    return float(sums[-1, away].sum() / sums[-1].sum())


def _chance(value: float) -> float:
    return min(1.0, max(0.0, float(value)))
