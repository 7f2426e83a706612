from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.errors import ConfigurationError
from testbed.model import Experiment
from testbed.plan import plan_trials
from tests.hallway import make_experiment


def test_each_repetition_has_the_next_seed() -> None:
    trials = plan_trials(replace(make_experiment(repetitions=3), seed=5))
    assert [(t.repetition, t.seed) for t in trials[:4]] == [(0, 5), (1, 6), (2, 7), (0, 5)]
    assert len(trials) == 24
    assert [t.condition for t in trials[::3]] == list(make_experiment().conditions)


def test_ids_are_unique_and_stable(experiment: Experiment) -> None:
    ids = [trial.id for trial in plan_trials(replace(experiment, repetitions=5))]
    assert len(set(ids)) == len(ids) == 40
    assert ids == [trial.id for trial in plan_trials(replace(experiment, repetitions=5))]
    assert ids[::5] == [trial.id for trial in plan_trials(experiment)]


def test_the_time_out_does_not_change_an_id_but_kernel_and_seed_do(experiment: Experiment) -> None:
    ids = {trial.id for trial in plan_trials(experiment)}
    assert {t.id for t in plan_trials(replace(experiment, timeout_s=1.0))} == ids
    assert not {t.id for t in plan_trials(replace(experiment, kernel_version="6.1"))} & ids
    assert not {t.id for t in plan_trials(replace(experiment, seed=9))} & ids


def test_equal_conditions_are_refused(experiment: Experiment) -> None:
    twice = replace(experiment, conditions=experiment.conditions[:1] * 2)
    with pytest.raises(ConfigurationError, match="the same"):
        plan_trials(twice)
    with pytest.raises(ConfigurationError, match="no trials"):
        plan_trials(replace(experiment, conditions=()))
