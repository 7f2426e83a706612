"""When lab, capture, client and load start: at round instants, or as much later as a seed says."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from testbed.base.seeding import start_offset_ns
from testbed.lab.alignment import (
    AGE_NS,
    ALIGN_NS,
    LAUNCH_NS,
    READY_NS,
    Moments,
    choose_moments,
    next_round,
)
from testbed.model import Condition, Trial

NOW = 1_700_000_006_720_000_000
ROUND = 1_700_000_010_000_000_000
TRIAL = Trial(Condition("p", "graph"), 0, 5, "virtual", "7.3")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: NOW)


def test_a_round_instant_forgets_what_was() -> None:
    assert next_round(NOW) == next_round(NOW + 1000) == ROUND
    assert next_round(ROUND) == ROUND
    assert next_round(ROUND + 1) == ROUND + ALIGN_NS


def test_without_a_spread_client_and_load_start_at_round_instants() -> None:
    moments = choose_moments(TRIAL)
    assert (moments.launch_ns, moments.load_ns) == (ROUND, ROUND + LAUNCH_NS)


def test_there_is_always_time_to_get_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: ROUND - READY_NS + 1)
    assert choose_moments(TRIAL).launch_ns == ROUND + ALIGN_NS


@pytest.mark.parametrize(("lab_s", "ages"), [(0, 1), (20, 1), (93, 1), (94, 2)])
def test_a_client_launched_before_loads_at_an_age_that_labs_do_not_change(
    monkeypatch: pytest.MonkeyPatch, lab_s: int, ages: int
) -> None:
    launched_ns = NOW - 6_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: NOW + lab_s * 1_000_000_000)
    assert choose_moments(TRIAL, launched_ns) == Moments(launched_ns, launched_ns + ages * AGE_NS)
    trial = replace(TRIAL, condition=replace(TRIAL.condition_as(Condition), start_spread_ms=7.0))
    spread = choose_moments(trial, launched_ns)
    assert spread.load_ns - launched_ns - ages * AGE_NS == start_offset_ns(trial.seed, 7.0) > 0
    assert spread.launch_ns == launched_ns


@pytest.mark.parametrize("spread_ms", [1.0, 60_000.0])
def test_with_a_spread_both_start_later_and_a_client_waits_no_longer(spread_ms: float) -> None:
    trial = replace(
        TRIAL, condition=replace(TRIAL.condition_as(Condition), start_spread_ms=spread_ms)
    )
    offset_ns = start_offset_ns(trial.seed, spread_ms)
    moments = choose_moments(trial)
    assert offset_ns > 0
    assert moments.launch_ns == ROUND + offset_ns
    assert moments.load_ns - moments.launch_ns == LAUNCH_NS
    assert choose_moments(replace(trial, seed=6)) != moments
