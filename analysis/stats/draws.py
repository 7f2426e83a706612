"""Draws of two environments: may one be no more than further draws of the other?

A seed is a draw of all cells at once, so whole seeds change sides, as often as there are ways to
deal them or MOST_DEALS times: exact whatever ties or ties cells together (E. J. G. Pitman, 1937).
The p of a cell is corrected for all cells: P. H. Westfall and S. S. Young, Resampling-Based
Multiple Testing, 1993, section 2.6.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.stats.shift import Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

Draws = Mapping[Block, float]
"""The value of each draw of a cell, by (seed, repetition)."""
MOST_DEALS = 10_000
"""With more ways to deal the seeds than this, so many are drawn, the same ones every time."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class DrawsTest:
    """What chance alone makes of the difference between two environments."""

    corrected: tuple[float, ...]
    """The p of each cell, corrected for all cells."""
    uniform: float
    """The p that ranks of all new draws among the base's are uniform."""


def compare_draws(cells: Sequence[tuple[Draws, Draws]], ranked: int | None = None) -> DrawsTest:
    """Test whether the new draws of ``cells`` (base, new) come from where the base's come.

    ``uniform`` is of the first ``ranked`` of them, or of all.

    Of each cell three things are looked at: the values, which tell how far apart they are; their
    ranks, which no single stalled load hides; and the ranks of their distances from the median,
    which tell another spread.

    Raises:
        ValueError: a side has no draw at all.
    """
    import numpy

    base, new = _blocks(cells)
    if not base or not new:
        raise ValueError("no test of draws without draws on both sides")
    deals = _deals(len(base), len(new))
    largest, ranks = numpy.zeros(len(deals)), numpy.zeros(len(deals))
    as_it_was: list[float] = []
    for number, (before, after) in enumerate(cells):
        values = [*(before.get(b, math.nan) for b in base), *(after.get(b, math.nan) for b in new)]
        # One cell after the other: aspects of all cells and deals take gigabytes.
        found = _apart(deals, numpy.array(values))
        most = numpy.maximum.reduce(found)
        as_it_was.append(float(most[0]))
        numpy.maximum(largest, most, out=largest)
        if ranked is None or number < ranked:
            # Values are left out: a rank is one among others whatever the load time.
            for aspect in found[1:]:
                ranks += aspect**2
    corrected = [float((largest >= one - ROUNDING).mean()) for one in as_it_was]
    if ranked is not None and _blocks(cells[:ranked]) != (base, new):
        return DrawsTest(tuple(corrected), compare_draws(cells[:ranked]).uniform)
    return DrawsTest(tuple(corrected), float((ranks >= ranks[0] - ROUNDING).mean()))


def _blocks(cells: Sequence[tuple[Draws, Draws]]) -> tuple[list[Block], list[Block]]:
    """Return the draws that any of ``cells`` has, on each side."""
    base, new = (sorted({block for cell in cells for block in cell[i]}) for i in (0, 1))
    return base, new


def least_p_of_deals(n: int, m: int) -> float:
    """Return the least p of ``n`` and ``m`` draws: one deal of all, or two that mirror it."""
    return (2 if n == m else 1) / math.comb(n + m, n)


def draws_to_tell(n: int, m: int, alpha: float) -> int:
    """Return how many more draws on each side can show a difference at ``alpha``; 0 for none."""
    return next(more for more in itertools.count() if least_p_of_deals(n + more, m + more) <= alpha)


def _deals(n: int, m: int) -> NDArray[Any]:
    """Return which of ``n + m`` seeds are the new ones, a row for each deal, as it was first."""
    import numpy

    first = numpy.repeat((0.0, 1.0), (n, m))
    if math.comb(n + m, n) <= MOST_DEALS:
        deals = numpy.zeros((math.comb(n + m, m), n + m))
        chosen = numpy.array(list(itertools.combinations(range(n + m), m)))
        numpy.put_along_axis(deals, chosen, 1.0, axis=1)
    else:
        deals = numpy.random.default_rng(0).permuted(numpy.tile(first, (MOST_DEALS - 1, 1)), axis=1)
        return numpy.vstack([first, deals])
    return deals[::-1]  # the last combination has the new seeds at the end


def _apart(deals: NDArray[Any], values: NDArray[Any]) -> list[NDArray[Any]]:
    """Return how far each deal sets values, ranks and distances apart: correlations, 0 to 1.

    A seed without a value in this cell counts on neither side.
    """
    import numpy
    from scipy import stats

    there = ~numpy.isnan(values)
    known = values[there]
    sides = deals if there.all() else deals[:, there]
    taken = sides.sum(axis=1)
    ways = taken * (len(known) - taken) / max(1, len(known))
    distances = numpy.round(numpy.abs(known - numpy.median(known)), 9)
    aspects = (known, stats.rankdata(known), stats.rankdata(distances))
    found = []
    for aspect in aspects:
        centred = aspect - aspect.mean() if len(aspect) else aspect
        scale = numpy.sqrt(ways * (centred**2).sum())
        apart = numpy.abs(sides @ centred)
        found.append(numpy.divide(apart, scale, out=numpy.zeros_like(apart), where=scale > 0))
    return found
