"""The calibration for real time: what is waited for, and what is made of what was seen."""

from __future__ import annotations

import struct

import pytest

from testbed.lab.exactness import HOST, VIRTUAL, Exactness
from testbed.lab.real_time_calibration import (
    Train,
    echo_request,
    judge_train,
    spacing_ms,
    wanted_arrivals,
)
from testbed.model import LabReading, LinkSpec

SPEC = LinkSpec()


def train(**changes: object) -> Train:
    """A train over the downlink of ``SPEC``: 88 survive, one each 3 ms."""
    seen: dict[str, object] = {
        "way": "down", "sent": 107, "dropped": 19, "sending_ms": 1.0,
        "arrivals_ns": tuple(3_000_000 * i for i in range(88)),
    }  # fmt: skip
    return Train(**(seen | changes))  # type: ignore[arg-type]


def test_a_train_as_theory_has_it() -> None:
    rate, buffer = judge_train(train(), SPEC, HOST)
    assert (rate.measured, rate.theory) == (4000.0, 4000.0)
    assert (buffer.measured, buffer.theory, buffer.tolerance) == (88.0, 88.0, 1.0)
    assert rate.within and buffer.within


def test_packets_that_left_meanwhile_are_taken_off() -> None:
    _, buffer = judge_train(train(dropped=16, sending_ms=10.0), SPEC, HOST)
    assert buffer.measured == 88.0


@pytest.mark.parametrize(("dropped", "within"), [(20, True), (18, True), (17, False), (21, False)])
def test_one_packet_is_the_bound(dropped: int, within: bool) -> None:
    _, buffer = judge_train(train(dropped=dropped), SPEC, HOST)
    assert buffer.within is within
    text = LabReading((buffer,), {}).problems
    assert (text == ()) is within or "tolerance 1 packets" in text[0]


def test_a_buffer_that_was_never_full_is_a_problem() -> None:
    _, buffer = judge_train(train(dropped=0, sending_ms=500.0), SPEC, HOST)
    assert (buffer.measured, buffer.within) == (107.0, False)


@pytest.mark.parametrize("arrivals", [(), (1,)])
def test_too_few_arrivals_have_no_rate(arrivals: tuple[int, ...]) -> None:
    rate, _ = judge_train(train(arrivals_ns=arrivals), SPEC, HOST)
    assert (rate.measured, rate.within) == (0.0, False)


def test_a_late_packet_has_no_weight() -> None:
    times = [3_000_000 * i for i in range(88)]
    times[40] += 9_000_000
    assert spacing_ms(times) == 3.0


def test_how_many_are_waited_for() -> None:
    assert wanted_arrivals("up", SPEC, 350.0) == 7
    assert wanted_arrivals("down", SPEC, 350.0) == 88
    assert wanted_arrivals("up", LinkSpec(up_kbit=56), 350.0) == 5


@pytest.mark.parametrize(("identifier", "number"), [(0, 0), (0xFFFF, 8), (0x1234, 255)])
def test_the_checksum_of_a_ping(identifier: int, number: int) -> None:
    request = echo_request(identifier, number)
    total = sum(struct.unpack("!40H", request))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    assert (len(request), total) == (80, 0xFFFF)


@pytest.mark.parametrize(("measured", "within"), [(23.8, True), (23.9, False), (22.9, True)])
def test_the_round_trip_has_an_absolute_bound(measured: float, within: bool) -> None:
    assert HOST.judge_rtt(measured, 23.325).within is within


def test_virtual_time_is_exact() -> None:
    assert not VIRTUAL.judge_buffer("up", 89.0, 88.0).within
    assert not VIRTUAL.judge_rtt(23.35, 23.325).within
    assert (VIRTUAL.real_time, HOST.real_time) == (False, True)
    assert Exactness(0.005, 0.1, 0.0, call_us=1.2) == VIRTUAL


def test_on_a_fast_link_system_calls_are_in_the_measurement() -> None:
    """As measured at 1 Gbit/s and 0.2 ms: 12.1 us a packet."""
    assert VIRTUAL.judge_rtt(0.202752, 0.2016).within
    assert not VIRTUAL.judge_rtt(0.2072, 0.2016).within
    assert VIRTUAL.judge_buffer("up", 90.0, 88.0, doubtful=2.0).within
    assert not VIRTUAL.judge_buffer("up", 91.0, 88.0, doubtful=2.0).within
