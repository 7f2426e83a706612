"""Signs of paired differences over several cells: may chance alone have made them agree so?

If a change does nothing, each seed's differences might as well have the other sign, in all cells at
once.  So whole seeds change their signs, in all ways that there are or MOST_FLIPS times: exact
whatever ties cells together (R. A. Fisher, The Design of Experiments, 1935, section 21).  Of each
cell the signed ranks are summed (F. Wilcoxon, 1945), which no single stalled load decides; the
squares of these sums are what is compared, so that cells may move in different directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.stats.shift import Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FLIPS = 4096
"""With more ways to flip the signs of seeds than this, so many are drawn, the same every time."""
_ROUNDING = 1e-9


def p_of_signs(cells: Sequence[Mapping[Block, float]]) -> float:
    """Return the p that signs agree so within ``cells``, each of differences by seed.

    1 where nothing differs.  A cell in which nothing does takes no part.
    """
    import numpy
    from scipy import stats

    blocks = sorted({block for cell in cells for block in cell})
    ranked = []
    for cell in cells:
        values = numpy.array([cell.get(block, 0.0) for block in blocks])
        moved = values != 0.0
        if moved.any():
            ranks = numpy.zeros(len(blocks))
            ranks[moved] = stats.rankdata(numpy.abs(values[moved])) * numpy.sign(values[moved])
            ranked.append(ranks / numpy.sqrt((ranks**2).sum()))
    if not ranked:
        return 1.0
    sums = (_flips(len(blocks)) @ numpy.array(ranked).T) ** 2
    together = sums.sum(axis=1)
    return float((together >= together[0] - _ROUNDING).mean())


def _flips(seeds: int) -> NDArray[Any]:
    """Return the signs of seeds, a row for each way, the one in which none is flipped first."""
    import numpy

    if 2**seeds <= MOST_FLIPS:
        numbers = numpy.arange(2**seeds)
        return 1.0 - 2.0 * ((numbers[:, None] >> numpy.arange(seeds)) & 1)
    drawn = numpy.random.default_rng(0).choice((-1.0, 1.0), (MOST_FLIPS - 1, seeds))
    return numpy.vstack([numpy.ones(seeds), drawn])
