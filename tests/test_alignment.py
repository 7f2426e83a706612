"""When a load starts: at a round instant, or as much later as its seed says."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from testbed.alignment import ALIGN_NS, LAUNCH_NS, choose_start, next_start
from testbed.model import Condition, Trial
from testbed.variation import start_offset_ns

NOW = 1_700_000_006_720_000_000
TRIAL = Trial(Condition("p", "graph"), 0, 5, "virtual", "7.3")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long anybody slept; the clock stands at ``NOW``."""
    naps: list[float] = []
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    monkeypatch.setattr(time, "sleep", naps.append)
    return naps


def test_a_load_starts_at_a_round_instant_that_forgets_microseconds() -> None:
    start = next_start(NOW)
    assert start % ALIGN_NS == 0
    assert LAUNCH_NS <= start - NOW < LAUNCH_NS + ALIGN_NS
    assert next_start(NOW + 1000) == start


def test_without_a_spread_it_starts_there(slept: list[float]) -> None:
    assert choose_start(TRIAL) == next_start(NOW)
    assert slept == []


@pytest.mark.parametrize("spread_ms", [1.0, 60_000.0])
def test_with_one_it_starts_later_and_a_client_waits_no_longer(
    slept: list[float], spread_ms: float
) -> None:
    trial = replace(TRIAL, condition=replace(TRIAL.condition, start_spread_ms=spread_ms))
    offset_ns = start_offset_ns(trial.seed, spread_ms)
    start = choose_start(trial)
    assert start - next_start(NOW) == offset_ns > 0
    assert slept == [offset_ns / 1e9]
    assert start - (NOW + offset_ns) < LAUNCH_NS + ALIGN_NS
    assert choose_start(replace(trial, seed=6)) != start
