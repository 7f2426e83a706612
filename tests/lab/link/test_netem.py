"""The link by netem and tbf: exact delays, exact theory, and a kernel that cannot do it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import MissingError
from testbed.lab.link.netem import NETEM, directions, wanted_disciplines
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
