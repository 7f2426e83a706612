"""Plan of an experiment: its trials, in the order in which they run.

Trials come in blocks, each with every condition once and a seed of its own: a table is whole after
the first block, and settles with each further one.  In virtual time a block has the order of the
tables: a trial cannot disturb another.  In real time a machine drifts, so each block has an order
of its own (randomised blocks: R. A. Fisher, The Design of Experiments, 1935, chapter IV).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from testbed.base.errors import ConfigurationError
from testbed.experiment.ids import list_ids
from testbed.experiment.stopping import look_points
from testbed.model import Experiment, Trial, in_real_time


def plan_trials(
    experiment: Experiment, repetitions: int | None = None, once: Collection[str] = ()
) -> tuple[Trial, ...]:
    """Return every condition with every repetition; repetition ``r`` has the seed ``seed + r``.

    Without ``repetitions`` there are as many as a run makes before it first looks whether it may
    stop.  What draws nothing is there ``once`` with these clients: more seeds would give copies.
    Warm-ups come first.  In real time each block is shuffled by its number and the seed
    alone: more blocks leave the order of the first ones as it was.

    Raises:
        ConfigurationError: two trials are the same, or there are none.
    """
    warmups = [block for r in range(_warmup_blocks(experiment)) for block in _block(experiment, r)]
    if repetitions is None:
        repetitions = next(look_points(experiment, ()))
    counted = [
        trial
        for r in range(repetitions)
        for trial in _block(experiment, r)
        if r == 0 or trial.condition.draws or trial.client not in once
    ]
    if not counted:
        raise ConfigurationError([f"{experiment.name}: the experiment has no trials"])
    trials = (*(replace(trial, warm_up=True) for trial in warmups), *counted)
    seen: set[str] = set()
    for trial, name in zip(trials, list_ids(trials), strict=True):
        if name in seen:
            raise ConfigurationError(
                [f"{experiment.name}: two trials are the same (id {name}): {trial.condition}"]
            )
        seen.add(name)
    return trials


def choose_trials(trials: Sequence[Trial], done: frozenset[str]) -> tuple[Trial, ...]:
    """Return those of ``trials`` that must run when the trials ``done`` have an ``ok`` record.

    A condition is warmed up each time that it is to run: a resumed run finds a cold machine.
    """
    missing = [trial for trial in trials if not trial.warm_up and trial.id not in done]
    conditions = {trial.condition for trial in missing}
    warmups = [trial for trial in trials if trial.warm_up and trial.condition in conditions]
    return (*warmups, *missing)


def positions(trials: Sequence[Trial]) -> dict[str, int]:
    """Return the place of each trial in its block, by trial id; empty in virtual time."""
    begun: Counter[tuple[bool, int]] = Counter()
    places: dict[str, int] = {}
    for trial in trials:
        if in_real_time(trial.kernel):
            block = (trial.warm_up, trial.repetition)
            places[trial.id] = begun[block]
            begun[block] += 1
    return places


def _warmup_blocks(experiment: Experiment) -> int:
    if experiment.warmup_blocks is not None:
        return experiment.warmup_blocks
    return 1 if in_real_time(experiment.kernel) else 0


def _block(experiment: Experiment, repetition: int) -> list[Trial]:
    """Return every condition once, all with one seed, in the order in which they run."""
    trials = [
        Trial(
            condition=condition,
            repetition=repetition,
            seed=experiment.seed + repetition,
            kernel=experiment.kernel,
            kernel_version=experiment.kernel_version,
            timeout_s=experiment.timeout_s,
        )
        for condition in experiment.conditions
    ]
    if in_real_time(experiment.kernel):
        # Reproducible on purpose, not secret.
        random.Random(f"{experiment.seed} {repetition}").shuffle(trials)  # noqa: S311
    return trials
