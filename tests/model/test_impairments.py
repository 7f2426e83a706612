"""Impairments as asked: each direction's own, distributions, changes, and what no link could do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import pytest

from testbed.model import Distribution, LinkSpec
from testbed.model.impairments import (
    MOST_DEVIATIONS,
    Bursts,
    deviation_at,
    fastest,
    find_problems,
    highest,
    is_drawn,
    is_lossy,
    lowest,
    phases,
    share_below,
    ways,
    without_chance,
)

BURSTS = "p 1 r 30 1-h 100 1-k 0.5"


def test_a_plain_link_has_equal_ways_and_draws_nothing() -> None:
    down, up = ways(LinkSpec(rtt_ms=33.334)).values()
    assert down == up
    assert (down.delay_ms, down.earliest_ms, down.latest_ms) == (16.667,) * 3
    assert not is_drawn(LinkSpec()) and not is_lossy(LinkSpec())


@pytest.mark.parametrize(
    ("knobs", "down", "up"),
    [({"delay_up_ms": 5.0}, {"delay_ms": 15.0}, {"delay_ms": 5.0}),
     ({"loss_pct": 1.0, "loss_up_pct": 0.0}, {"loss_pct": 1.0}, {"loss_pct": 0.0}),
     ({"loss_down_pct": 2.0}, {"loss_pct": 2.0}, {"loss_pct": 0.0}),
     ({"loss_bursts": BURSTS, "loss_up_pct": 3.0}, {"bursts": Bursts(1.0, 30.0, 100.0, 0.5)},
      {"bursts": None, "loss_pct": 3.0}),
     ({"delay_jitter_ms": 2.0, "reorder_pct": 1.0, "reorder_ms": 7.0},
      {"earliest_ms": 8.0, "latest_ms": 19.0}, {"earliest_ms": 8.0, "latest_ms": 19.0})],
)  # fmt: skip
def test_each_way_has_its_own(
    knobs: dict[str, Any], down: dict[str, Any], up: dict[str, Any]
) -> None:
    spec = LinkSpec(**knobs)
    for name, wanted in (("down", down), ("up", up)):
        assert {each: getattr(ways(spec)[name], each) for each in wanted} == wanted
    assert is_drawn(spec) is (without_chance(spec) != spec)


@pytest.mark.parametrize("kind", get_args(Distribution))
def test_a_distribution_is_its_own_inverse_and_has_a_mean_of_zero(kind: Distribution) -> None:
    shares = [(n + 0.5) / 20_000 for n in range(20_000)]
    draws = [deviation_at(kind, share) for share in shares]
    assert all(a <= b for a, b in pairwise(draws))
    assert lowest(kind) <= draws[0] and draws[-1] <= highest(kind) <= MOST_DEVIATIONS
    # The tail that a table has no room for is a tenth of pareto's spread.
    assert abs(sum(draws) / len(draws)) < (0.04 if kind == "pareto" else 1e-6)
    variance = sum(draw * draw for draw in draws) / len(draws)
    assert variance == pytest.approx(
        {"uniform": 1 / 3, "normal": 1, "pareto": 0.544}[kind], abs=0.01
    )
    for share, draw in zip(shares, draws, strict=True):
        if lowest(kind) < draw < highest(kind):
            assert share_below(kind, draw) == pytest.approx(share, abs=1e-9)
    assert share_below(kind, highest(kind)) == 1 and share_below(kind, lowest(kind) - 1e-9) == 0


def test_the_phases_of_a_load() -> None:
    text = (
        "at 0.25 s: down for 0.5 s; at 1.000001 s: rtt_ms 80.5, down_kbit 1000; at 3 s: up_kbit 64"
    )
    spec = LinkSpec(changes=text)
    found = [
        (p.at_ns, p.down, p.spec.rtt_ms, p.spec.down_kbit, p.spec.up_kbit) for p in phases(spec)
    ]
    assert found == [(0, False, 20.0, 4000, 256), (250_000_000, True, 20.0, 4000, 256),
                     (750_000_000, False, 20.0, 4000, 256), (1_000_001_000, False, 80.5, 1000, 256),
                     (3_000_000_000, False, 80.5, 1000, 64)]  # fmt: skip
    quick = fastest(replace(spec, delay_jitter_ms=3.0))
    assert (quick.rtt_ms, quick.down_kbit, quick.up_kbit, quick.changes) == (14.0, 4000, 256, "")
    assert not is_drawn(quick)


@pytest.mark.parametrize(
    ("knobs", "knob", "says"),
    [
        ({"loss_bursts": "p 101 r 30 1-h 100 1-k 0"}, "loss_bursts", "a chance above 100 %"),
        ({"reorder_pct": 0.001}, "reorder_pct", "allowed: 0, or 0.01 and up"),
        ({"delay_up_ms": 20.1}, "delay_up_ms", "is 20.1 ms, and rtt_ms 20 ms in all"),
        ({"delay_jitter_ms": 10.1}, "delay_jitter_ms", "allowed: up to 10 ms, or raise rtt_ms"),
        ({"delay_jitter_ms": 2.6, "delay_distribution": "normal"}, "delay_jitter_ms", "to 2.5 ms"),
        ({"delay_jitter_ms": 4.0, "delay_up_ms": 2.0}, "delay_jitter_ms", "the delay of 2 ms that"),
        ({"changes": "at 0 s: rtt_ms 40"}, "changes", "allowed: times above 0 in their order"),
        ({"changes": "at 1 s: down for 0 s"}, "changes", "at 1 s begins before what is there"),
        ({"changes": "at 1 s: down for 2 s; at 2 s: rtt_ms 4"}, "changes", "without overlap"),
        ({"changes": "at 9 s: down for 1.5 s"}, "changes", "over after 10.5 s, and a load is"),
        ({"changes": "at 1 s: rtt_ms 0"}, "changes", "rtt_ms 0; allowed: above 0 to 60000"),
        ({"changes": "at 1 s: up_kbit 99999999"}, "changes", "up_kbit 1e+08; allowed"),
        ({"changes": "at 1 s: rtt_ms 4", "delay_jitter_ms": 5.0}, "changes",
         "the delay of 2 ms that a way has at 1 s"),
        ({"changes": "at 1 s: rtt_ms 4", "delay_up_ms": 5.0}, "changes", "and rtt_ms at 1 s 4 ms"),
        ({"changes": "at 1 s: rtt_ms 4", "qdisc": "pfifo limit 9"}, "changes", "resizes the queue"),
        ({"path_mtu_bytes": 1501}, "path_mtu_bytes", "allowed: 576 to 1500"),
        ({"path_mtu_discovery": "black-hole"}, "path_mtu_discovery", "set link.path_mtu_bytes"),
        ({"ip": "6", "mtu_bytes": 1279}, "ip", "no link.mtu_bytes below 1280"),
        ({"trace_up": "lte-drive-up", "changes": "at 1 s: down_kbit 9, up_kbit 1000"}, "changes",
          "up_kbit has no effect beside trace_up"),
    ],
)  # fmt: skip
def test_what_no_link_could_do(knobs: dict[str, Any], knob: str, says: str) -> None:
    ((found, sentence),) = find_problems(LinkSpec(**knobs), 10.0)
    assert (found, says in sentence) == (knob, True), sentence


@pytest.mark.parametrize(
    "knobs",
    [{}, {"loss_bursts": BURSTS, "loss_up_pct": 1.0}, {"delay_jitter_ms": 10.0},
     {"delay_jitter_ms": 17.0, "delay_distribution": "pareto"}, {"changes": "at 1 s: down for 9 s"},
     {"delay_up_ms": 0.0}, {"path_mtu_bytes": 1500, "path_mtu_discovery": "black-hole"},
     {"trace_down": "lte-drive-down", "delay_up_ms": 5.0, "loss_pct": 1.0, "duplicate_pct": 1.0,
      "corrupt_pct": 1.0}],
)  # fmt: skip
def test_what_a_link_can_do(knobs: dict[str, Any]) -> None:
    assert [*find_problems(LinkSpec(**knobs), 10.0)] == []
