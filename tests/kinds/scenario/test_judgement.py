"""Judgement of a scenario: network, captures, kernels and script have to tell the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.kinds.scenario.judgement import (
    check_counters,
    check_delay,
    check_script,
    check_times,
    check_whole,
)
from testbed.kinds.scenario.measurement import Arrival, Call, Passage, Performance
from testbed.kinds.scenario.script import parse_script
from testbed.model import LabReading, Measurement
from testbed.wire.packets import ACK, SYN, Packet
from tests.kinds.scenario.made import packet

RTT_MS = 100.0
SENT = packet("client", "server", SYN)
TAKEN = packet("client", "server", SYN, at_ms=50)
ANSWERED, CAME = (packet("server", "client", SYN | ACK, at_ms=ms) for ms in (50, 100))
CAPTURES = {"client": [SENT, CAME], "server": [TAKEN, ANSWERED], "attacker": list[Packet]()}
PASSAGES = (
    Passage("client", 0, SENT.at_ns, [Arrival("server", 0, TAKEN.at_ns)]),
    Passage("server", 1, ANSWERED.at_ns, [Arrival("client", 1, CAME.at_ns)]),
)
SCRIPT = parse_script("wait 1ms\nwait 2ms\n")
CALLS = tuple(
    Call(each.line, each.actor, each.text, 10 * each.line, 10 * each.line + 5, "ok")
    for each in SCRIPT.actions
)
PERFORMED = Performance(CALLS, PASSAGES)
COUNTERS = {end: {"TcpInSegs": 1, "TcpOutSegs": 1} for end in ("client", "server")}


def only(found: Iterator[str]) -> str:
    (sentence,) = found
    return sentence


def test_what_agrees_has_no_problem() -> None:
    assert not [
        *check_whole(PERFORMED, CAPTURES),
        *check_times(PERFORMED, CAPTURES, RTT_MS),
        *check_script(PERFORMED, SCRIPT),
        *check_delay(lab_of(50.0), RTT_MS),
    ]


def test_a_packet_that_no_capture_has() -> None:
    fewer = CAPTURES | {"server": [TAKEN]}
    assert only(check_whole(PERFORMED, fewer)) == "server.pcap has 1 packets, the network carried 2"


def test_a_packet_at_another_time_than_captured() -> None:
    late = replace(PASSAGES[1], at_ns=PASSAGES[1].at_ns - 1)
    assert only(check_times(Performance((), (PASSAGES[0], late)), CAPTURES, RTT_MS)) == (
        "packet 1 of server.pcap was at another time than on the network"
    )


@pytest.mark.parametrize(
    ("early_ns", "fits"), [(0, True), (1000, True), (1001, False), (10_000_000, False)]
)
def test_a_packet_takes_half_a_round_trip(early_ns: int, fits: bool) -> None:
    sooner = TAKEN._replace(at_ns=TAKEN.at_ns - early_ns)
    passage = Passage("client", 0, SENT.at_ns, [Arrival("server", 0, sooner.at_ns)])
    captures = CAPTURES | {"server": [sooner, ANSWERED]}
    found = [*check_times(Performance((), (passage,)), captures, RTT_MS)]
    said = f"packet 0 of client.pcap took {(50_000_000 - early_ns) / 1e6:.6g} ms"
    assert found == ([] if fits else [said])


def test_an_attacker_may_be_next_door() -> None:
    passage = Passage("attacker", 0, TAKEN.at_ns, [Arrival("server", 0, TAKEN.at_ns)])
    captures = CAPTURES | {"attacker": [TAKEN]}
    assert not [*check_times(Performance((), (passage,)), captures, RTT_MS)]


def test_other_lines_than_the_script_s() -> None:
    assert only(check_script(Performance(CALLS[:1], ()), SCRIPT)) == (
        "1 of 2 lines were performed; None is not the script's"
    )
    other = (CALLS[0], replace(CALLS[1], text="wait 3ms"))
    assert only(check_script(Performance(other, ()), SCRIPT)) == (
        "2 of 2 lines were performed; (2, 'wait', 'wait 3ms') is not the script's"
    )


@pytest.mark.parametrize("began_ns", [14, 26])
def test_lines_one_after_the_other(began_ns: int) -> None:
    calls = (CALLS[0], replace(CALLS[1], at_ns=began_ns))
    assert only(check_script(Performance(calls, ()), SCRIPT)) == (
        "a line of the script ended before it began, or before the one above it"
    )


def lab_of(theory_ms: float) -> LabReading:
    return LabReading((Measurement("delay", "ms", 50.0, theory_ms, 0.1),), {})


def test_the_delay_of_the_network() -> None:
    for lab in (None, LabReading((), {})):
        assert only(check_delay(lab, RTT_MS)) == "the delay of the network was not measured"
    assert only(check_delay(lab_of(100.0), RTT_MS)) == (
        "the delay was held against 100 ms, asked was 50"
    )


def sent(one: Packet) -> Packet:
    """A packet as its sender captures it: of another hardware address than those it takes."""
    return one._replace(frame=one.frame[:11] + b"\1" + one.frame[12:])


@pytest.mark.parametrize(
    ("counted", "sentence"),
    [
        ({}, None),
        ({"TcpInSegs": 2}, "the server's kernel took 2 segments, captured: 1"),
        ({"TcpInSegs": 0}, "the server's kernel took 0 segments, captured: 1"),
        ({"TcpOutSegs": 2}, "the server's kernel sent up to 2 segments, captured: 1"),
        ({"TcpOutSegs": 0}, "the server's kernel sent up to 0 segments, captured: 1"),
        ({"TcpOutSegs": 0, "TcpRetransSegs": 1}, None),
        ({"TcpRetransSegs": 1}, None),
    ],
)
def test_what_a_kernel_counted(counted: dict[str, int], sentence: str | None) -> None:
    captures = {"client": [sent(SENT), CAME], "server": [TAKEN, sent(ANSWERED)]}
    counters = COUNTERS | {"server": COUNTERS["server"] | counted}
    assert [*check_counters(captures, counters)] == ([] if sentence is None else [sentence])


def test_a_host_that_was_not_asked() -> None:
    assert only(check_counters(CAPTURES, {"server": {"TcpInSegs": 2}})) == (
        "the client's kernel was not asked what it counted"
    )
