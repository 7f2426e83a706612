"""The link by netem and tbf: exact delays, exact theory, and a kernel that cannot do it."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import MissingError
from testbed.lab.link.discipline import Discipline
from testbed.lab.link.netem import NETEM, describe_drawn, directions, wanted_disciplines
from testbed.lab.link.protocol import require_emulated
from testbed.lab.link.tables import make_delay_table, make_late_table
from testbed.lab.link.tap import Tap
from testbed.lab.topology import open_topology
from testbed.model import LinkSpec

SPEC = LinkSpec(rtt_ms=20, down_kbit=4000, up_kbit=256, buffer_bytes=131072)
DOWN, UP = directions(SPEC)


def test_the_buffer_stands_before_the_delay_on_the_way() -> None:
    down = (DOWN.rate_kbit, DOWN.buffer_role, DOWN.buffer_device, DOWN.delay_role)
    assert down == (4000, "far", "f0", "near")
    up = (UP.rate_kbit, UP.buffer_role, UP.buffer_device, UP.delay_role, UP.delay_device)
    assert up == (256, "near", "n1", "far", "f1")
    assert DOWN.delay_device == "n0"


@given(microseconds=st.integers(min_value=0, max_value=10_000_000))
def test_the_delay_is_exactly_half_of_the_round_trip(microseconds: int) -> None:
    spec = LinkSpec(rtt_ms=microseconds * 2 / 1000)
    wanted = wanted_disciplines(spec)
    delays = [each.settings["delay_ns"] for each in wanted.values() if each.kind == "netem"]
    assert delays == [microseconds * 1000.0] * 2


def test_each_direction_has_its_own_delay_loss_and_seed() -> None:
    spec = LinkSpec(delay_up_ms=3, loss_up_pct=1, reorder_pct=2.5)
    wanted = wanted_disciplines(spec, 7)
    down, up = wanted["near", "n0"], wanted["far", "f1"]
    assert (down.settings["delay_ns"], up.settings["delay_ns"]) == (17e6, 3e6)
    assert (down.settings["loss_pct"], up.settings["loss_pct"]) == (0, 1)
    late = wanted["near", "n0 10001"], wanted["far", "f1 10001"]
    assert all(one.settings["jitter_ns"] == 10e6 for one in late)
    seeds = {one.drawn for one in (down, up, *late)}
    assert len(seeds) == 4
    assert seeds.isdisjoint(one.drawn for one in wanted_disciplines(spec, 8).values())
    assert all(not one.drawn for one in wanted_disciplines(SPEC, 7).values())
    assert describe_drawn(spec, 7)["up.netem"].endswith(f" {up.drawn}; {as_told_late(late[1])}")


def as_told_late(late: Discipline) -> str:
    return (
        "netem rate_bytes_s 0 delay_ns 0 limit_packets 100000 overhead_bytes 0 loss_pct 0 "
        f"jitter_ns 10000000 {late.drawn}"
    )


def test_tables_have_the_shape_that_is_asked_for() -> None:
    draws = struct.unpack("=10000h", make_late_table(2.5))
    assert draws.count(8192) == 250 and set(draws) == {0, 8192}
    assert make_delay_table("uniform") == b""
    for kind, least, most in (("normal", -4, 4), ("pareto", -0.58, 4)):
        table = struct.unpack("=4096h", make_delay_table(kind))  # type: ignore[arg-type]
        assert least * 8192 < table[0] and 3 * 8192 < table[-1] < most * 8192
        assert list(table) == sorted(table)


@pytest.mark.parametrize(
    "knobs",
    [
        {"delay_up_ms": 3.0}, {"loss_up_pct": 1.0}, {"loss_down_pct": 0.0}, {"duplicate_pct": 1.0},
        {"loss_bursts": "p 1 r 30 1-h 100 1-k 0"}, {"delay_jitter_ms": 1.0}, {"reorder_pct": 1.0},
        {"corrupt_pct": 1.0}, {"changes": "at 1 s: down for 1 s"},
    ],
)  # fmt: skip
def test_the_other_lane_refuses_each_by_name(knobs: dict[str, Any]) -> None:
    spec = LinkSpec(**knobs)
    require_emulated(NETEM, spec)
    with pytest.raises(MissingError, match=f"tap link cannot emulate link.{next(iter(knobs))} = "):
        require_emulated(Tap(), spec)


@pytest.mark.root
def test_a_kernel_that_cannot_shape_says_so(tag: str, has_netem: bool) -> None:
    if has_netem:
        pytest.skip("this kernel has netem")
    with (
        pytest.raises(MissingError, match=r"has no (tbf|netem): .*--kernel virtual"),
        open_topology(tag, SPEC.mtu_bytes, 1) as topology,
        NETEM.open(topology, SPEC, 0),
    ):
        pytest.fail("there is no such discipline")


@pytest.mark.root
def test_what_is_missing_is_found_before_a_trial(has_netem: bool) -> None:
    problem = NETEM.find_problem()
    assert (problem is None) == has_netem
    if problem is not None:
        assert "netem" in problem
