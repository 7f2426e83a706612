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

from testbed.base import log
from testbed.kinds import KINDS
from testbed.model import FIRST_LOOK, Experiment, Record, Spec, kind_of

_log = log.logger(__name__)
PAIR = 2
LOOK_EVERY = 5

Unsettled = Callable[[Experiment, Sequence[Record]], tuple[str, ...]]
"""From an experiment and all its records to the names of the cells that need more."""


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


def seeds_differ(kind: str, measured: Sequence[object]) -> bool | None:
    """Return whether one of what trials of a ``kind`` measured is another than the first.

    ``None``: there are not two of them.
    """
    if len(measured) < 2:
        return None
    return any(KINDS[kind].differ(measured[0], other) for other in measured[1:])


class StoppingRule:
    """Rule by which a run ends: it is asked at each look, and keeps what the last one found.

    Attributes:
        unsettled: the cells whose intervals called for more at the last look.
    """

    def __init__(self, experiment: Experiment, list_unsettled: Unsettled) -> None:
        self._experiment, self._list_unsettled = experiment, list_unsettled
        self.unsettled: tuple[str, ...] = ()

    def is_met(self, repetitions: int, records: Sequence[Record]) -> bool:
        """Return whether the run may end after so many ``repetitions``, by all its records."""
        experiment = self._experiment
        if experiment.until_ci_pct is None:
            return False  # its only look is its end
        if repetitions > PAIR:
            self.unsettled = self._list_unsettled(experiment, records)
            return not self.unsettled
        copies = draws_nothing(experiment) and nothing_varies(records)
        if copies:
            remedy = KINDS[experiment.kind].no_draw()
            _log.info("nothing varies between seeds here: %s", remedy)
        return copies


def draws_nothing(experiment: Experiment) -> bool:
    """Return whether no knob of ``experiment`` asks for a draw: then equal loads are no chance."""
    return not any(condition.draws for condition in experiment.conditions)


def nothing_varies(records: Iterable[Record]) -> bool:
    """Return whether each condition has two counted loads or more, and no seed mattered."""
    trials: dict[Spec, dict[str, object]] = defaultdict(dict)
    for record in records:
        if record.outcome == "ok" and record.measured is not None and not record.trial.warm_up:
            trials[record.trial.condition][record.trial_id] = record.measured
    differ = [
        seeds_differ(kind_of(condition), list(own.values())) for condition, own in trials.items()
    ]
    return bool(differ) and all(each is False for each in differ)
