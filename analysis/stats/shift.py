"""Shift between two arms that ran in the same blocks: Hodges and Lehmann's estimate.

It is the median of all means of two differences (Walsh averages); its interval is Tukey's, from
the signed-rank test: M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric Statistical Methods,
3rd edition 2014, sections 3.2 and 3.3.  It needs no normal distribution, only differences that lie
symmetrically about the shift; those of two arms that differ by a shift alone do.  Where an arm has
two humps they do not: there stand the median of the differences, and the least and the greatest,
between which a median lies whatever the distribution (section 3.6).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from analysis.stats.estimates import LEVEL, Estimate, Interval, level_of_range, two_humps

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT_UP_TO = 200
"""Beyond so many differences the normal approximation of the rank sum is as good."""
Block = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shift:
    """How much sooner the second arm ends than the first, over ``n`` blocks; negative is later.

    ``percent`` is of the first arm's own time in each block.
    """

    n: int
    ms: Estimate
    percent: Estimate

    @property
    def shown(self) -> bool | None:
        """Whether the interval leaves out zero; ``None`` where it is none of 95 %."""
        interval = self.ms.interval
        if interval is None or interval.level < LEVEL:
            return None
        return not interval.holds(0.0)


def shift_between(first: Mapping[Block, float], second: Mapping[Block, float]) -> Shift | None:
    """Compare two arms over the blocks that both have (ms by block); ``None`` without any."""
    blocks = sorted(block for block in first.keys() & second.keys() if first[block] > 0)
    if not blocks:
        return None
    saved = [first[block] - second[block] for block in blocks]
    percent = [s / first[block] * 100.0 for s, block in zip(saved, blocks, strict=True)]
    humped = any(two_humps(arm[block] for block in blocks) for arm in (first, second))
    return Shift(len(blocks), estimate_paired_shift(saved, humped=humped),
                 estimate_paired_shift(percent, humped=humped))  # fmt: skip


def without_interval(shift: Shift) -> Shift:
    """Return ``shift`` without intervals, for arms in which nothing varies."""
    return replace(
        shift, ms=replace(shift.ms, interval=None), percent=replace(shift.percent, interval=None)
    )


def estimate_paired_shift(differences: Iterable[float], *, humped: bool = False) -> Estimate:
    """Return the shift that the ``differences`` of pairs show, with its interval, in their unit.

    With fewer than 6 the interval is the widest there is, at a lower level; with one there is
    none.  Ties make it a little wider than its level calls for.  Differences of ``humped`` arms are
    not taken for symmetric.

    Raises:
        ValueError: there are none.
    """
    numbers = tuple(sorted(differences))
    if not numbers:
        raise ValueError("no differences to estimate a shift from")
    if len(numbers) == 1:
        return Estimate(numbers[0], None)
    if humped:
        widest = Interval(numbers[0], numbers[-1], min(LEVEL, level_of_range(len(numbers))))
        return Estimate(statistics.median(numbers), widest)
    return _estimate(numbers)


@cache
def _estimate(numbers: tuple[float, ...]) -> Estimate:
    # Imported here: a table of single loads does not pay for it.
    import numpy

    n = len(numbers)
    values = numpy.asarray(numbers)
    first, second = numpy.triu_indices(n)
    walsh = numpy.sort((values[first] + values[second]) / 2.0)
    drop = walsh_averages_outside(n)
    interval = Interval(float(walsh[drop]), float(walsh[-1 - drop]),
                        min(LEVEL, level_of_range(n)))  # fmt: skip
    return Estimate(float(numpy.median(walsh)), interval)


@cache
def walsh_averages_outside(n: int) -> int:
    """Return how many Walsh averages of ``n`` differences are outside of the interval, each side.

    The greatest rank sum that is not exceeded with a probability of 2.5 % at most; 0 when there is
    none.
    """
    import numpy

    tail = (1.0 - LEVEL) / 2.0
    if n > EXACT_UP_TO:
        from scipy import stats

        mean, variance = n * (n + 1) / 4.0, n * (n + 1) * (2 * n + 1) / 24.0
        return int(mean - 0.5 + stats.norm.ppf(tail) * variance**0.5)
    not_exceeded = numpy.cumsum(_rank_sums(n))
    return max(0, int(numpy.searchsorted(not_exceeded, tail, side="right")) - 1)


def _rank_sums(n: int) -> NDArray[Any]:
    """Return the probability of each rank sum 0..n(n+1)/2 if a fair coin picks the ranks."""
    import numpy

    chances = numpy.zeros(n * (n + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        moved = numpy.zeros_like(chances)
        moved[rank:] = chances[:-rank]
        chances = (chances + moved) / 2.0
    return chances
