"""Theory of what a link draws: how many packets should be lost, doubled or late, and how surely.

Each count is bounded by Chernoff's inequality over the chain of states that the line goes through,
so that losses in bursts are bounded as rigorously as single ones (the generating function of the
count is a product of matrices).  A delay's distribution is bounded by the inequality of Dvoretzky,
Kiefer, Wolfowitz and Massart.  A right link is beyond a bound with less than ``FALSE_ALARM``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from testbed.model.impairments import Way, share_below

PACKETS = 2000
PROBE_IP_BYTES = 36
FALSE_ALARM = 1e-6
"""The chance that a link which is right is beyond one bound, at most."""
DIGITS = 6
"""Of theory and bounds that count: two machines need not agree on more."""
_TILTS = tuple(0.005 * 1.2**step for step in range(45))
_SMALL = 1e-4
_FRAME_BYTES = PROBE_IP_BYTES + 14
_HARMLESS_BITS = 49
"""Of the frame: those of its sender's hardware address, and that which makes it a multicast."""

Bound = tuple[float, float, float]
"""The mean of a count, and how far above and below it the count may be."""
Matrix = list[list[float]]
Counted = Callable[[float], Matrix]
"""The chain's matrix for one packet, in which what counts weighs exp(tilt)."""


def count_lost(way: Way) -> Bound:
    """Return how many of the probes never come."""
    none, one, two = _arrivals(way)
    return _bound(lambda tilt: _sum((math.exp(tilt), none), (1, one), (1, two)))


def count_bursts(way: Way) -> Bound:
    """Return how many runs of lost probes there are."""
    none, one, two = _arrivals(way)
    here = _sum((1, one), (1, two))

    def chain(tilt: float) -> Matrix:
        # The states twice: behind a probe that came, and behind one that did not.
        first = [[math.exp(tilt) * cell for cell in row] for row in none]
        return [
            *(come + lost for come, lost in zip(here, first, strict=True)),
            *(come + lost for come, lost in zip(here, none, strict=True)),
        ]

    return _bound(chain)


def count_copies(way: Way) -> Bound:
    """Return how many probes come twice."""
    none, one, two = _arrivals(way)
    return _bound(lambda tilt: _sum((1, none), (1, one), (math.exp(tilt), two)))


def count_late(way: Way) -> Bound:
    """Return how many probes come later than half of ``reorder_ms``."""
    late = 1 - share_in_time(way, way.reorder_ms / 2)
    none, one, two = _arrivals(way)

    def chain(tilt: float) -> Matrix:
        weight = 1 - late + late * math.exp(tilt)
        return _sum((1, none), (weight, one), (weight**2, two))

    return _bound(chain)


def share_in_time(way: Way, late_ms: float) -> float:
    """Return the share of packets whose delay is at most ``late_ms`` above the one asked for."""
    held = way.reorder_pct / 100
    return (1 - held) * _share(way, late_ms) + held * _share(way, late_ms - way.reorder_ms)


def bound_distance(way: Way) -> float:
    """Return how far a distribution of probes' delays may be from theory (Kolmogorov, Smirnov)."""
    lost, above, _ = count_lost(way)
    least = max(1.0, PACKETS - lost - above)
    apart = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * least))
    # Of a probe that comes twice the first counts, unless it was damaged or held back.
    twice = way.duplicate_pct / 100 * (way.corrupt_pct + way.reorder_pct) / 100
    return _rounded(apart + twice)


def _share(way: Way, late_ms: float) -> float:
    if not way.jitter_ms:
        return float(late_ms >= 0)
    return share_below(way.distribution, late_ms / way.jitter_ms)


def _arrivals(way: Way) -> tuple[Matrix, Matrix, Matrix]:
    """Return the chain's matrices of a probe that comes not at all, once, and twice.

    A copy goes the whole way again, and is lost as any other; only of one that is not lost itself
    there is a second (tc-netem(8); net/sched/sch_netem.c).
    """
    moves, losses = [[1.0]], [way.loss_pct / 100]
    if way.bursts is not None:
        bad, good = way.bursts.to_bad_pct / 100, way.bursts.to_good_pct / 100
        moves = [[1 - bad, bad], [good, 1 - good]]
        losses = [way.bursts.good_loss_pct / 100, way.bursts.bad_loss_pct / 100]
    twice = way.duplicate_pct / 100
    damaged = way.corrupt_pct / 100 * (1 - _HARMLESS_BITS / (8 * _FRAME_BYTES))
    lost = _weigh(losses, moves)
    kept = _weigh([1 - loss for loss in losses], moves)
    passed_none = _scale(1 - twice, lost)
    passed_one = _sum((1 - twice, kept), (twice, lost), (twice, _times(kept, lost)))
    passed_two = _scale(twice, _times(kept, kept))
    return (
        _sum((1, passed_none), (damaged, passed_one), (damaged**2, passed_two)),
        _sum((1 - damaged, passed_one), (2 * damaged * (1 - damaged), passed_two)),
        _scale((1 - damaged) ** 2, passed_two),
    )


def _bound(chain: Counted) -> Bound:
    """Return the mean of a count over ``PACKETS`` probes, and its bounds."""
    mean = (_log_mean(chain(_SMALL)) - _log_mean(chain(-_SMALL))) / (2 * _SMALL)
    surprise = math.log(2 / FALSE_ALARM)
    most = min((_log_mean(chain(tilt)) + surprise) / tilt for tilt in _TILTS)
    least = max(-(_log_mean(chain(-tilt)) + surprise) / tilt for tilt in _TILTS)
    return _rounded(mean), _rounded(most - mean), _rounded(mean - least)


def _log_mean(step: Matrix) -> float:
    """Return the logarithm of the weight of all ways of ``PACKETS`` probes, from the first state.

    By squaring, with each power scaled to 1 at most: the weight itself has no float.
    """
    power, power_log = step, 0.0
    row, row_log = [1.0] + [0.0] * (len(step) - 1), 0.0
    left = PACKETS
    while left:
        if left & 1:
            (row,) = _times([row], power)
            most = max(row)
            row, row_log = [cell / most for cell in row], row_log + power_log + math.log(most)
        power = _times(power, power)
        most = max(max(line) for line in power)
        power, power_log = _scale(1 / most, power), 2 * power_log + math.log(most)
        left >>= 1
    return row_log + math.log(sum(row))


def _times(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [
        [sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a
    ]


def _weigh(weights: list[float], a: Matrix) -> Matrix:
    return [[weight * cell for cell in row] for weight, row in zip(weights, a, strict=True)]


def _scale(factor: float, a: Matrix) -> Matrix:
    return [[factor * cell for cell in row] for row in a]


def _sum(*parts: tuple[float, Matrix]) -> Matrix:
    size = range(len(parts[0][1]))
    return [[sum(weight * part[i][j] for weight, part in parts) for j in size] for i in size]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
