"""Search for the saturation of a server by bisection: trials at one rate after the other.

A server is saturated at the greatest rate that it keeps up with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from testbed.base.errors import TrialError
from testbed.model import Experiment, Record
from wings.server_loads.measurement import ServedLoad
from wings.server_loads.spec import HIGHEST_RATE, ServerLoad

KEPT_UP_PCT = 98.0
"""Replies, as a share of the connections that came: less is not kept up with.  In a few seconds
the two differ by a percent anyway, for replies are counted when they come."""
RESOLUTION = 1.01
"""A search ends where the rate that is too much is so many times one that is kept up with."""
BEGIN = 1000
"""The first rate that is tried, in connections a second, where a file knows no better one."""


def plan_search(experiment: Experiment) -> Experiment:
    """Return the experiment of a search: the first condition of ``experiment``, once.

    Its first rate is the saturation that ``experiment`` states, or BEGIN.
    """
    return _at(
        replace(
            experiment,
            name=f"{experiment.name}-saturation",
            title=f"Saturation: {experiment.title}",
            repetitions=1,
            until_ci_pct=None,
            warmup_blocks=0,
            reference=None,
            leave_out=(),
        ),
        [experiment.saturation_per_s or BEGIN],
    )


def search_saturation(
    experiment: Experiment, measure: Callable[[Experiment], Record]
) -> Iterator[Bracket]:
    """Yield ever narrower bounds of the saturation, from what ``experiment`` states on.

    ``measure`` runs an experiment and returns the record of its last condition.

    Raises:
        TrialError: a trial has no number, with the reason.
    """
    tried: list[int] = []

    def holds(rate: int) -> bool:
        tried.append(rate)
        record = measure(_at(experiment, tried))
        served = record.measured_as(ServedLoad)
        if record.outcome != "ok" or served is None:
            raise TrialError(
                f"at {rate:,} connections a second the trial was {record.outcome}: {record.reason}"
            )
        return keeps_up(served)

    return bisect(experiment.saturation_per_s or BEGIN, holds)


def keeps_up(load: ServedLoad) -> bool:
    """Return whether the server answered as fast as connections came."""
    return load.replies_per_s * load.seconds >= load.started * KEPT_UP_PCT / 100


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bounds of a saturation: a rate that the server keeps up with, and one that it does not."""

    kept: int
    lost: int


def bisect(begin: int, holds: Callable[[int], bool]) -> Iterator[Bracket]:
    """Yield ever narrower bounds of the greatest rate for which ``holds``, from ``begin`` on.

    Rates are doubled or halved until there is one of each kind, then their geometric mean is tried.
    The last bounds are RESOLUTION apart.  At the ends of the possible rates there may be none.
    """
    kept, lost, rate = 0, HIGHEST_RATE + 1, begin
    while kept < rate < lost and (not kept or lost > HIGHEST_RATE):
        kept, lost = (rate, lost) if holds(rate) else (kept, rate)
        rate = min(rate * 2, HIGHEST_RATE) if kept == rate else rate // 2
    if not kept or lost > HIGHEST_RATE:
        return
    yield Bracket(kept, lost)
    while lost > max(kept + 1, kept * RESOLUTION):
        rate = max(kept + 1, min(lost - 1, round(math.sqrt(kept * lost))))
        kept, lost = (rate, lost) if holds(rate) else (kept, rate)
        yield Bracket(kept, lost)


def _at(experiment: Experiment, rates: Iterable[int]) -> Experiment:
    """Return ``experiment`` with its first condition at each of ``rates``."""
    load = experiment.conditions[0]
    if not isinstance(load, ServerLoad):
        raise TypeError("only a server has a saturation")
    loads = (replace(load, arrivals=replace(load.arrivals, rate_per_s=rate)) for rate in rates)
    return replace(experiment, conditions=tuple(loads))
