from __future__ import annotations

from dataclasses import replace

import pytest

from bench.visit_cost import ONE, TWO, ratios
from testbed.base.errors import TrialError
from testbed.model import Condition, Cost, Record, Trial


def record(visits: int, seed: int, cpu_s: float, **more: object) -> Record:
    condition = Condition("p", "chromium", protocol="h2", visits=visits)
    trial = Trial(condition, 0, seed, "virtual", "7.3")
    made = Record("id", trial, "ok", "environment", cost=Cost(cpu_s, 2.0, 9.0))
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_load_is_held_against_that_of_its_seed() -> None:
    records = [record(2, 1, 3.0), record(1, 0, 1.0), record(2, 0, 1.5), record(1, 1, 4.0)]
    assert ratios(records, TWO, ONE) == [1.5, 0.75]


def test_what_did_not_count_costs_nothing() -> None:
    with pytest.raises(TrialError, match="no proof"):
        ratios([record(1, 0, 1.0, outcome="unproven", reason="no proof")], TWO, ONE)
