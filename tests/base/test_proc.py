"""Processes: how children are started, and scheduled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from testbed.base import proc

TOLD_S = 30.0
PRINT = "import os; print(os.sched_getscheduler(0))"


def policy_of_child(said: Path) -> int:
    with (
        said.open("wb") as output,
        proc.spawned([sys.executable, "-c", PRINT], env={}, descriptors={1: output.fileno()}) as it,
    ):
        assert it.wait(TOLD_S) == 0
    return int(said.read_text())


def test_children_are_scheduled_as_their_parent_is(tmp_path: Path) -> None:
    before = os.sched_getscheduler(0)
    with proc.scheduled(os.SCHED_BATCH):
        assert policy_of_child(tmp_path / "inside") == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == before
    assert policy_of_child(tmp_path / "after") == before


def test_the_policy_is_given_back_after_an_error() -> None:
    before = os.sched_getscheduler(0)
    with pytest.raises(RuntimeError), proc.scheduled(os.SCHED_BATCH):
        raise RuntimeError
    assert os.sched_getscheduler(0) == before
