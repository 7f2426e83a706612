"""Draws: whether loads of one condition differ because their seeds do.

In virtual time nothing but the seed tells two loads of a condition apart.  Where it decides
nothing that a load depends on, repetitions are copies: they have no spread, and intervals made of
them would promise something about chance that was never asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from testbed.model import Condition, Experiment, PageLoad, Record

RESOLUTION_MS = 0.01
"""Less is no other load: a system call takes 256 ns of virtual time, and ports may cost one."""
REMEDY = (
    "a seed decides what loss_pct and think_spread_pct draw, and for browsers start_spread_ms: "
    "set one of them, or ask for one repetition"
)


def seeds_differ(loads: Sequence[PageLoad]) -> bool | None:
    """Whether one of ``loads`` took another time than the first, in all or in a single request.

    ``None``: there are not two of them.
    """
    if len(loads) < 2:
        return None
    return any(_differs(loads[0], load) for load in loads[1:])


def draws_nothing(experiment: Experiment) -> bool:
    """Whether no knob of ``experiment`` asks for a draw; two equal loads are no chance then."""
    return not any(map(_draws, experiment.conditions))


def nothing_varies(records: Iterable[Record]) -> bool:
    """Whether every condition has loads that count, two at least, and no seed made a difference."""
    loads: dict[Condition, dict[str, PageLoad]] = defaultdict(dict)
    for record in records:
        if record.outcome == "ok" and record.load is not None and not record.trial.warm_up:
            loads[record.trial.condition][record.trial_id] = record.load
    found = [seeds_differ(list(own.values())) for own in loads.values()]
    return bool(found) and all(differ is False for differ in found)


def _draws(condition: Condition) -> bool:
    return bool(condition.link.loss_pct or condition.think_spread_pct or condition.start_spread_ms)


def _differs(one: PageLoad, other: PageLoad) -> bool:
    times, others = _times_ms(one), _times_ms(other)
    return len(times) != len(others) or any(
        abs(a - b) > RESOLUTION_MS for a, b in zip(times, others, strict=True)
    )


def _times_ms(load: PageLoad) -> list[float]:
    return [load.plt_ms, *(t for r in load.requests for t in (r.start_ms, r.end_ms))]
