"""Ids of many trials are those of each, and what conditions add to them is written once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.base import places
from testbed.experiment import ids
from testbed.experiment.ids import TrialIds, list_ids
from testbed.experiment.plan import plan_trials
from testbed.model import Condition, Experiment
from testbed.model.knob import identity
from testbed.results.manifest import load_manifest

COMMITTED = sorted(path.parent for path in places.ROOT.glob("analysis/*/*/manifest.json"))


@pytest.mark.parametrize("folder", COMMITTED, ids=lambda folder: folder.name)
def test_they_are_those_of_each_trial_whatever_its_kind(folder: Path) -> None:
    plan = replace(load_manifest(folder).experiment, warmup_blocks=1)
    trials = plan_trials(plan)
    assert any(trial.warm_up for trial in trials)
    assert list_ids(trials) == [trial.id for trial in trials]


def test_conditions_that_are_equal_and_written_otherwise_have_other_ids(
    experiment: Experiment,
) -> None:
    trial = plan_trials(experiment)[0]
    condition = trial.condition_as(Condition)
    whole = replace(condition, link=replace(condition.link, rtt_ms=20))
    broken = replace(condition, link=replace(condition.link, rtt_ms=20.0))
    assert whole == broken
    known = TrialIds()
    for each in (whole, broken):
        other = replace(trial, condition=each)
        assert known.of(other) == other.id


def test_a_plan_of_twice_as_many_repetitions_looks_no_more_often_at_its_conditions(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def look(spec: Any) -> dict[str, Any]:
        looked.append(spec)
        return identity(spec)

    monkeypatch.setattr(ids, "identity", look)
    counts = []
    for repetitions in (5, 10):
        assert len(plan_trials(replace(experiment, repetitions=repetitions))) == 8 * repetitions
        counts.append(len(looked))
        looked.clear()
    assert counts == [8, 8]
