"""The link by netem and tbf: exact commands, exact theory, and a kernel that cannot do it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import MissingError
from testbed.lab.link.netem import NETEM, buffer_argv, delay_argv, directions
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


def test_buffer_command() -> None:
    assert " ".join(buffer_argv(DOWN, SPEC, "far")) == (
        "tc -n far qdisc replace dev f0 root stab overhead -14 linklayer ethernet "
        "tbf rate 4000kbit burst 1540 limit 131072"
    )


def test_buffer_command_counts_framing() -> None:
    spec = LinkSpec(framing_bytes=14, buffer_bytes=9000, mtu_bytes=576)
    assert " ".join(buffer_argv(directions(spec)[1], spec, "near")) == (
        "tc -n near qdisc replace dev n1 root stab overhead 0 linklayer ethernet "
        "tbf rate 256kbit burst 616 limit 9000"
    )


def test_delay_command() -> None:
    assert " ".join(delay_argv(UP, SPEC, "far", 0.0)) == (
        "tc -n far qdisc replace dev f1 root netem limit 100000 delay 10000us rate 256kbit -14"
    )


def test_delay_command_with_loss() -> None:
    assert " ".join(delay_argv(DOWN, SPEC, "near", 1.5)) == (
        "tc -n near qdisc replace dev n0 root netem limit 100000 delay 10000us loss 1.5% "
        "rate 4000kbit -14"
    )


@given(microseconds=st.integers(min_value=0, max_value=10_000_000))
def test_the_delay_is_exactly_half_of_the_round_trip(microseconds: int) -> None:
    spec = LinkSpec(rtt_ms=microseconds * 2 / 1000)
    argv = delay_argv(DOWN, spec, "near", 0.0)
    word = argv[argv.index("delay") + 1]
    assert word == f"{microseconds}us"


@pytest.mark.root
def test_a_kernel_that_cannot_shape_says_so(tag: str, has_netem: bool) -> None:
    if has_netem:
        pytest.skip("this kernel has netem")
    with (
        pytest.raises(MissingError, match=r"no tbf or no netem .*--kernel virtual"),
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
