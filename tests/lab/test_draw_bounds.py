"""Bounds of what a link draws, held against exact sums and against a link played in Python."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from testbed.lab.draw_bounds import (
    FALSE_ALARM,
    PACKETS,
    PROBE_IP_BYTES,
    Bound,
    bound_distance,
    count_bursts,
    count_copies,
    count_late,
    count_lost,
)
from testbed.model import LinkSpec
from testbed.model.impairments import Way, ways

LINKS: dict[str, dict[str, Any]] = {
    "loss": {"loss_pct": 1.0}, "bursts": {"loss_bursts": "p 1 r 30 1-h 90 1-k 0.1"},
    "copies": {"duplicate_pct": 20.0}, "damage": {"corrupt_pct": 5.0}, "late": {"reorder_pct": 3.0},
    "late and jitter": {"reorder_pct": 10.0, "reorder_ms": 2.0, "delay_jitter_ms": 3.0},
    "all": {"loss_bursts": "p 2 r 40 1-h 80 1-k 1", "duplicate_pct": 30.0, "corrupt_pct": 10.0,
            "reorder_pct": 5.0},
}  # fmt: skip
COUNTS: dict[str, Callable[[Way], Bound]] = {
    "loss": count_lost, "bursts": count_bursts, "copies": count_copies, "late": count_late,
}  # fmt: skip


def down(**knobs: Any) -> Way:
    return ways(LinkSpec(**knobs))["down"]


def play(way: Way, rng: random.Random) -> Counter[str]:
    """What comes of the probes: netem's algorithm as net/sched/sch_netem.c has it."""
    bad = False
    found: Counter[str] = Counter()
    was_lost = False
    harmless = 49 / (8 * (PROBE_IP_BYTES + 14))

    def is_lost() -> bool:
        nonlocal bad
        if way.bursts is None:
            return rng.random() * 100 < way.loss_pct
        model = way.bursts
        loss_pct = model.bad_loss_pct if bad else model.good_loss_pct
        turns_pct = model.to_good_pct if bad else model.to_bad_pct
        bad ^= rng.random() * 100 < turns_pct
        return rng.random() * 100 < loss_pct

    for _ in range(PACKETS):
        count = 1 + (rng.random() * 100 < way.duplicate_pct)
        count -= is_lost()
        if count == 2:
            count -= is_lost()
        arrived = sum(
            rng.random() * 100 >= way.corrupt_pct or rng.random() < harmless for _ in range(count)
        )
        for _ in range(arrived):
            jitter_ms = rng.uniform(-1, 1) * way.jitter_ms
            held_ms = way.reorder_ms if rng.random() * 100 < way.reorder_pct else 0.0
            found["late"] += jitter_ms + held_ms > way.reorder_ms / 2
        found["loss"] += arrived == 0
        found["bursts"] += arrived == 0 and not was_lost
        found["copies"] += arrived == 2
        was_lost = arrived == 0
    return found


@pytest.mark.parametrize("name", LINKS)
def test_a_right_link_is_within_all_bounds_and_on_the_mean(name: str) -> None:
    way = down(**LINKS[name])
    rng = random.Random(1)  # noqa: S311
    runs = [play(way, rng) for _ in range(40)]
    for what, count in COUNTS.items():
        mean, above, below = count(way)
        found = [run[what] for run in runs]
        assert all(mean - below <= each <= mean + above for each in found), (what, mean)
        assert sum(found) / len(found) == pytest.approx(mean, abs=max(above, below) / 10 + 0.01)


@pytest.mark.parametrize("loss_pct", [0.3, 1.0, 10.0, 50.0])
def test_a_bound_of_single_losses_holds_for_the_binomial_distribution(loss_pct: float) -> None:
    mean, above, below = count_lost(down(loss_pct=loss_pct))
    share = loss_pct / 100
    assert mean == pytest.approx(PACKETS * share, rel=1e-4)

    def chance(count: int) -> float:
        log = math.lgamma(PACKETS + 1) - math.lgamma(count + 1) - math.lgamma(PACKETS - count + 1)
        return math.exp(log + count * math.log(share) + (PACKETS - count) * math.log(1 - share))

    out = sum(chance(n) for n in range(PACKETS + 1) if not -below <= n - mean <= above)
    # Chernoff's bound is no more than some times wider than it has to be.
    assert FALSE_ALARM / 100 < out < FALSE_ALARM or (loss_pct < 1 and out < FALSE_ALARM)


@pytest.mark.parametrize("loss_pct", [0.8, 1.0, 5.0])
def test_a_link_without_the_asked_loss_is_beyond_the_bound(loss_pct: float) -> None:
    mean, above, below = count_lost(down(loss_pct=loss_pct))
    assert mean - below > 0
    assert 4 * mean > mean + above


def test_bursts_are_told_from_single_losses_of_the_same_rate() -> None:
    way = down(loss_bursts="p 1 r 10 1-h 100 1-k 0")
    lost, *_ = count_lost(way)
    bursts, above, _ = count_bursts(way)
    assert lost / bursts == pytest.approx(10, rel=0.02)
    single, *_ = count_bursts(down(loss_pct=100 * lost / PACKETS))
    assert single > bursts + above


def test_how_far_a_distribution_may_be_off() -> None:
    whole = bound_distance(down(delay_jitter_ms=5.0))
    assert whole == pytest.approx(math.sqrt(math.log(2e6) / (2 * PACKETS)), rel=1e-3)
    assert bound_distance(down(delay_jitter_ms=5.0, loss_pct=20.0)) > whole
    assert bound_distance(down(delay_jitter_ms=5.0, loss_pct=100.0)) > 1
