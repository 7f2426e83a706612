"""Stopping rule of a run that samples until its intervals are narrow: it looks rarely, not early.

An interval that is looked at again and again until it pleases promises more than it holds.  Here
only its width decides, never where it lies, and then the level holds as intervals get narrow:
Y. S. Chow and H. Robbins, Ann. Math. Statist. 36 (1965) 457-462, for means; J. C. Geertsema, Ann.
Math. Statist. 41 (1970) 1016-1026, for the intervals of sign and signed-rank tests.  What is left
is a few samples that look narrow by chance, hence a first look at ten and then few more.

Before that comes one look at two repetitions, which sees no width: whether seeds differ at all.  In
virtual time only the seed separates two loads of a condition.  Where nothing that a load depends on
is drawn from it, repetitions are copies: they have no spread, and an interval made of them would
say nothing about chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from testbed.model import (
    FIRST_LOOK,
    Condition,
    Experiment,
    Kind,
    LinkSpec,
    Measured,
    PageLoad,
    Record,
    ServerLoad,
    Spec,
)
from testbed.model.knob import name_draws

PAIR = 2
LOOK_EVERY = 5

Unsettled = Callable[[Experiment, Sequence[Record]], tuple[str, ...]]
"""From an experiment and all its records to the names of the cells that need more."""
RESOLUTION_MS = 0.01
"""Less is no other load: a system call takes 256 ns of virtual time, and ports may cost one."""


def _drawn(spec: type, *more: str) -> str:
    """Return in words what a seed affects, by the declarations of knobs; ``more`` is no knob."""
    *others, last = (*name_draws(spec), *more)
    return f"a seed affects {', '.join(others)} and {last}" if others else f"a seed affects {last}"


DRAWS_REMEDY: dict[Kind, str] = {
    "page_load": f"{_drawn(Condition)} alone: set one of them, or ask for one repetition",
    "server_load": f"{_drawn(ServerLoad)} alone: set one of them, or ask for one repetition",
    "command": f"{_drawn(LinkSpec, 'what a command makes of {seed}')}: ask for one repetition",
    "scenario": "a scenario does not depend on its seed: ask for one repetition",
}
"""What to do where nothing varies between seeds, by the kind of trial."""


def all_settled(_experiment: Experiment, _records: Sequence[Record]) -> tuple[str, ...]:
    """Return what a caller without an analysis knows: nothing calls for more."""
    return ()


def look_points(experiment: Experiment, records: Iterable[Record]) -> Iterator[int]:
    """Yield after how many repetitions the run looks whether it may stop; the last is its bound.

    A fixed number of repetitions is one point.  The first of the others is ``PAIR``, at which
    only ``nothing_varies`` is asked.  ``records`` are those of an earlier
    start of the run: it goes on at the first point that they had not passed, so that to interrupt
    and resume does not add looks.
    """
    if experiment.until_ci_pct is None:
        yield experiment.repetitions
        return
    begun = max((r.trial.repetition + 1 for r in records if not r.trial.warm_up), default=0)
    most = max(experiment.max_repetitions, begun)
    if begun <= PAIR < most:
        yield PAIR
    point = max(experiment.repetitions, FIRST_LOOK)
    while point < most:
        if point >= begun:
            yield point
        point += LOOK_EVERY
    yield most


def seeds_differ(loads: Sequence[Measured]) -> bool | None:
    """Return whether a load took another time than the first, in all or in a single request.

    ``None``: there are not two of them.
    """
    if len(loads) < 2:
        return None
    return any(_differs(loads[0], load) for load in loads[1:])


def draws_nothing(experiment: Experiment) -> bool:
    """Return whether no knob of ``experiment`` asks for a draw: then equal loads are no chance."""
    return not any(condition.draws for condition in experiment.conditions)


def nothing_varies(records: Iterable[Record]) -> bool:
    """Return whether each condition has two counted loads or more, and no seed mattered."""
    loads: dict[Spec, dict[str, Measured]] = defaultdict(dict)
    for record in records:
        if record.outcome == "ok" and record.measured is not None and not record.trial.warm_up:
            loads[record.trial.condition][record.trial_id] = record.measured
    found = [seeds_differ(list(own.values())) for own in loads.values()]
    return bool(found) and all(differ is False for differ in found)


def _differs(one: Measured, other: Measured) -> bool:
    if not isinstance(one, PageLoad) or not isinstance(other, PageLoad):
        return one != other
    times, others = _times_ms(one), _times_ms(other)
    return len(times) != len(others) or any(
        abs(a - b) > RESOLUTION_MS for a, b in zip(times, others, strict=True)
    )


def _times_ms(load: PageLoad) -> list[float]:
    return [load.plt_ms, *(t for r in load.requests for t in (r.start_ms, r.end_ms))]
