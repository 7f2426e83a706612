"""Judgement of a scenario: network, captures, kernels and script have to tell the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.capture.packets import ACK, SYN, Packet, read_frame
from testbed.model import LabReading, Measurement, Proof, Trial
from testbed.proof.both_ends import check_bytes
from testbed.proof.check import Check
from tests.capture.packets import write_frames
from wings.scenarios.crossings import is_summed
from wings.scenarios.judgement import (
    ScenarioEvidence,
    ScenarioObservation,
    check_carried,
    check_counters,
    check_delay,
    check_script,
    check_times,
    judge,
)
from wings.scenarios.matching import Captures
from wings.scenarios.measurement import (
    Arrival,
    Call,
    Passage,
    Performance,
    ScenarioResult,
)
from wings.scenarios.promise import read_promise
from wings.scenarios.script import parse_script
from wings.scenarios.spec import Scenario
from wings.scenarios.tests.made import packet

RTT_MS = 100.0
SUMMED_FROM = 24
"""Of a frame: what is changed before may leave no segment to sum up."""
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


def found(
    check: Check,
    performed: Performance = PERFORMED,
    captures: Captures = CAPTURES,
    lab: LabReading | None = None,
    counters: dict[str, dict[str, int]] | None = None,
    script: str | None = None,
) -> list[str]:
    """What a check finds where ``SCRIPT`` was to be performed, over ``RTT_MS``."""
    observed = ScenarioObservation(lab=lab, counters=counters, performed=performed)
    performing = SCRIPT if script is None else parse_script(script)
    promise = replace(read_promise(PROMISE % KEPT), script=performing, rtt_ms=RTT_MS)
    asked = Trial(Scenario("a", ""), 0, 0, "virtual", "7.3")
    shown = {"captures": captures, "promise": promise}
    return [*check(ScenarioEvidence(asked, observed, Path(), shown=shown))]


def only(found: Iterable[str]) -> str:
    (sentence,) = found
    return sentence


def test_what_agrees_has_no_problem() -> None:
    assert not [
        problem
        for check in (check_carried, check_times, check_script, check_delay)
        for problem in found(check, lab=lab_of(50.0))
    ]


def test_a_packet_that_no_capture_has() -> None:
    fewer = CAPTURES | {"server": [TAKEN]}
    assert (
        only(found(check_carried, captures=fewer))
        == "server.pcap has 1 packets, the network carried 2"
    )


@pytest.mark.parametrize("at", range(14, 54))
@pytest.mark.parametrize("name", ["client", "server"])
@pytest.mark.parametrize("number", [0, 1])
def test_each_byte_of_a_packet_in_one_capture(name: str, number: int, at: int) -> None:
    """A checksum that is right again, as of a RST that is in one of two captures, is no excuse."""
    packets = list(CAPTURES[name])
    changed = bytearray(packets[number].frame)
    changed[at] ^= 4
    packets[number] = read_frame(packets[number].at_ns, bytes(changed), len(changed))
    flipped = CAPTURES | {name: packets}
    assert found(check_carried, captures=flipped) or at < SUMMED_FROM
    assert found(check_bytes, captures=flipped)


def test_a_kernel_may_write_the_other_zero_as_a_checksum() -> None:
    for seq in range(1 << 17):
        made = packet("client", "server", SYN, seq=seq)
        if made.frame[50:52] == bytes(2):
            break
    for sums, fits in ((b"\xff\xff", True), (b"\0\0", True), (b"\xff\xfe", False)):
        frame = made.frame[:50] + sums + made.frame[52:]
        assert is_summed(read_frame(0, frame, len(frame))) == fits


def test_what_a_middlebox_was_to_change_came_so() -> None:
    """Its rules hold from when the script laid them down, and make of a packet what they say."""
    stripped = "middlebox strip mss client > server\nwait 2ms\n"
    made = packet("client", "server", SYN, options=((2, b"\5\xb4"),))
    calls = [Call(e.line, e.actor, e.text, -1, -1, "ok") for e in parse_script(stripped).actions]
    for came, fits in ((TAKEN, True), (made._replace(at_ns=TAKEN.at_ns), False)):
        captures = CAPTURES | {"client": [made, CAME], "server": [came, ANSWERED]}
        said = found(check_bytes, Performance(tuple(calls), PASSAGES), captures, script=stripped)
        assert (said == []) == fits


def test_a_packet_at_another_time_than_captured() -> None:
    late = replace(PASSAGES[1], at_ns=PASSAGES[1].at_ns - 1)
    assert only(found(check_times, Performance((), (PASSAGES[0], late)))) == (
        "packet 1 of server.pcap was at another time than on the network"
    )


@pytest.mark.parametrize(
    ("early_ns", "fits"), [(0, True), (1000, True), (1001, False), (10_000_000, False)]
)
def test_a_packet_takes_half_a_round_trip(early_ns: int, fits: bool) -> None:
    sooner = TAKEN._replace(at_ns=TAKEN.at_ns - early_ns)
    passage = Passage("client", 0, SENT.at_ns, [Arrival("server", 0, sooner.at_ns)])
    captures = CAPTURES | {"server": [sooner, ANSWERED]}
    said = f"packet 0 of client.pcap took {(50_000_000 - early_ns) / 1e6:.6g} ms"
    assert found(check_times, Performance((), (passage,)), captures) == ([] if fits else [said])


def test_an_attacker_may_be_next_door() -> None:
    passage = Passage("attacker", 0, TAKEN.at_ns, [Arrival("server", 0, TAKEN.at_ns)])
    captures = CAPTURES | {"attacker": [TAKEN]}
    assert not found(check_times, Performance((), (passage,)), captures)


def test_other_lines_than_the_script_s() -> None:
    assert only(found(check_script, Performance(CALLS[:1], ()))) == (
        "1 of 2 lines were performed; None is not the script's"
    )
    other = (CALLS[0], replace(CALLS[1], text="wait 3ms"))
    assert only(found(check_script, Performance(other, ()))) == (
        "2 of 2 lines were performed; (2, 'wait', 'wait 3ms') is not the script's"
    )


@pytest.mark.parametrize("began_ns", [14, 26])
def test_lines_one_after_the_other(began_ns: int) -> None:
    calls = (CALLS[0], replace(CALLS[1], at_ns=began_ns))
    assert only(found(check_script, Performance(calls, ()))) == (
        "a line of the script ended before it began, or before the one above it"
    )


def lab_of(theory_ms: float) -> LabReading:
    return LabReading((Measurement("delay", "ms", 50.0, theory_ms, 0.1),), {})


def test_the_delay_of_the_network() -> None:
    for lab in (None, LabReading((), {})):
        assert only(found(check_delay, lab=lab)) == "the delay of the network was not measured"
    assert only(found(check_delay, lab=lab_of(100.0))) == (
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
    said = found(check_counters, captures=captures, counters=counters)
    assert said == ([] if sentence is None else [sentence])


def test_a_host_that_was_not_asked() -> None:
    assert only(found(check_counters, counters={"server": {"TcpInSegs": 2}})) == (
        "the client's kernel was not asked what it counted"
    )


PROMISE = """
title = "A wait"
source = "RFC 9293"
promise = "A wait is kept."
lesson = "Waiting."
fault = "wait 1s"
steps = \"\"\"
server listen s
client connect a server -> ok
%s
\"\"\"
"""
CHANGED = """
[changed]
since = "Linux 6"
says = "It is otherwise."
steps = \"\"\"
server listen s
client connect a server -> ok
%s
\"\"\"
"""
KEPT = "client > server [S]\nserver > client [S.]"
OTHER = "client > server [R]"


def judged(
    out: Path, text: str, seen: ScenarioObservation | None = None
) -> tuple[ScenarioResult, Proof]:
    """What comes of a handshake that was performed, if ``text`` was promised."""
    script = read_promise(text).script
    calls = tuple(Call(a.line, a.actor, a.text, a.line, a.line, "ok") for a in script.actions)
    captures = {"client": [sent(SENT), CAME], "server": [TAKEN, sent(ANSWERED)], "attacker": []}
    for name, packets in captures.items():
        write_frames(out / f"{name}.pcap", [(one.at_ns, one.frame) for one in packets])
    whole = ScenarioObservation(
        lab=lab_of(50.0), counters=COUNTERS, performed=Performance(calls, PASSAGES)
    )
    asked = Trial(Scenario("a-wait", text), 0, 0, "virtual", "7.3")
    found = judge(asked, seen or whole, out)
    assert isinstance(found.measured, ScenarioResult) and found.proof is not None
    return found.measured, found.proof


def test_a_promise_is_kept_broken_or_known_to_have_changed(tmp_path: Path) -> None:
    kept, proof = judged(tmp_path, PROMISE % KEPT)
    assert (kept.verdict, kept.differences, kept.failed_checks) == ("kept", (), 0)
    assert proof.problems == ()
    broken, _ = judged(tmp_path, PROMISE % OTHER)
    assert (broken.verdict, broken.failed_checks) == ("broken", len(broken.differences))
    assert "its flags are [S]" in broken.differences[0]
    changed, _ = judged(tmp_path, PROMISE % OTHER + CHANGED % KEPT)
    assert (changed.verdict, changed.failed_checks) == ("changed", 0)
    assert changed.differences == broken.differences
    both, _ = judged(tmp_path, PROMISE % OTHER + CHANGED % OTHER)
    assert both.verdict == "broken"


def test_each_contradiction_is_in_the_proof(tmp_path: Path) -> None:
    late = replace(PASSAGES[1], at_ns=PASSAGES[1].at_ns - 1)
    more = replace(PASSAGES[0], arrivals=PASSAGES[0].arrivals * 3)
    seen = ScenarioObservation(
        lab=lab_of(100.0),
        counters={"client": COUNTERS["client"], "server": {"TcpInSegs": 2, "TcpOutSegs": 1}},
        performed=Performance(CALLS, (more, late)),
        problems=("its own problem",),
    )
    _, proof = judged(tmp_path, PROMISE % KEPT, seen)
    assert [problem.partition(" ")[0] for problem in proof.problems] == [
        "its", "client:", "server.pcap", "the", "packet", "2", "the",
    ]  # fmt: skip


def test_what_was_not_performed_to_its_end_is_nothing(tmp_path: Path) -> None:
    asked = Trial(Scenario("a-wait", PROMISE % KEPT), 0, 0, "virtual", "7.3")
    found = judge(asked, ScenarioObservation(counters=COUNTERS), tmp_path)
    assert (found.measured, found.proof) == (None, None)
