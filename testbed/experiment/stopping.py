"""When a run that samples until its intervals are narrow looks at them: rarely, and not early.

An interval that is looked at again and again until it pleases promises more than it holds.  Here
only its width decides, never where it lies, and then the level holds as intervals get narrow:
Y. S. Chow and H. Robbins, Ann. Math. Statist. 36 (1965) 457-462, for means; J. C. Geertsema, Ann.
Math. Statist. 41 (1970) 1016-1026, for the intervals of sign and signed-rank tests.  What is left
is a few samples that look narrow by chance, hence a first look at ten and then few more.  Before
that comes one look at two repetitions, which sees no width: whether seeds differ at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from testbed.model import FIRST_LOOK, Experiment, Record

PAIR = 2
LOOK_EVERY = 5


def all_settled(_experiment: Experiment, _records: Sequence[Record]) -> tuple[str, ...]:
    """What a caller without an analysis knows: nothing calls for more."""
    return ()


Unsettled = Callable[[Experiment, Sequence[Record]], tuple[str, ...]]
"""From an experiment and all its records to the names of the cells that need more."""


def look_points(experiment: Experiment, records: Iterable[Record]) -> Iterator[int]:
    """Yield after how many repetitions the run looks whether it may stop; the last is its bound.

    A fixed number of repetitions is one point.  The first of the others is ``PAIR``, at which
    nothing is looked at but ``testbed.experiment.draws``.  ``records`` are those of an earlier
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
