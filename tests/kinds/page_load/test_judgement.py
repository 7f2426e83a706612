"""Judgement of a page load: each thing that its capture holds against it is in its proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from socket import inet_aton

import pytest

from testbed.capture.recorder import RECORDED_BYTES
from testbed.kinds.page_load.judgement import LoadObservation, judge
from testbed.model import (
    Condition,
    LabReading,
    LinkSpec,
    PageLoad,
    Replay,
    RequestTiming,
    ServedConnection,
    TcpSpec,
    Trial,
)
from tests.capture.packets import ACK, CLIENT, FIN, REQUEST, SERVER, Capture, Visit, write_frames
from tests.mechanisms.test_names import ask, question

CONDITION = Condition(
    "p", "graph", LinkSpec(rtt_ms=100.0, down_kbit=100_000, up_kbit=100_000), TcpSpec(), dns="hosts"
)
LOAD = PageLoad("graph", "1", 150.0, (RequestTiming("http://a/", 200, 0.0, 150.0, 300, "1"),))
SEEN = LoadObservation(
    lab=LabReading((), {}),
    load=LOAD,
    replay=Replay(1, most_per_connection=1),
    counters={"client": {"TcpActiveOpens": 1, "TcpExtTCPFastOpenActive": 0},
              "server": {"TcpExtTCPFastOpenPassive": 0}},
    hosts={SERVER: "www.page.test"},
)  # fmt: skip
UP, DOWN = ((CLIENT, 2000), (SERVER, 80)), ((SERVER, 80), (CLIENT, 2000))
ASKED, TOLD = 0xFFFFFFF1 + len(REQUEST), 5001
SYNACK_MS = 100.007
Alter = Callable[[Capture], None]


def load(*, synack_ms: float = SYNACK_MS, first_ms: float = 210.0, segments: int = 1) -> Capture:
    """A request on one connection, and as many segments as its answer."""
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn(at_ms=0)
    visit.synack(0, at_ms=synack_ms)
    visit.send(0, REQUEST)
    for number in range(segments):
        capture.add(*DOWN, ACK, TOLD + 1400 * number, ASKED, bytes(1400), b"",
                    at_ms=first_ms + number)  # fmt: skip
    capture.add(*UP, ACK, ASKED, TOLD + 1400 * segments, b"", b"")
    return capture


def with_(more: Alter) -> Capture:
    capture = load()
    more(capture)
    return capture


def cut() -> Capture:
    return replace(load(), snap=120)


def keep(capture: Capture, out: Path) -> None:
    """Both ends' captures, the server's as where there is too much to be recorded."""
    capture.write(out / "client.pcap")
    write_frames(out / "server.pcap", ())
    (out / "load.har").write_text('{"log": {"pages": [{"pageTimings": {}}], "entries": []}}')


def problems(
    out: Path, capture: Capture, seen: LoadObservation = SEEN, condition: Condition = CONDITION
) -> tuple[str, ...]:
    keep(capture, out)
    proof = judge(Trial(condition, 0, 0, "virtual", "7.3"), seen, out).proof
    assert proof is not None
    return proof.problems


def said(found: tuple[str, ...], sentence: str) -> bool:
    return any(sentence in problem for problem in found)


CONTRADICTIONS: dict[str, Capture] = {
    "frames were captured with less than 256 bytes": cut(),
    "1400 bytes of the server were acknowledged, and are not in the capture": with_(
        lambda capture: capture.add(*UP, ACK, ASKED, TOLD + 2800, b"", b"")
    ),
    "have up to 11 segments, asked was an initial window of 10": load(segments=11),
    "1 packets came down faster than 100000 kbit/s": with_(
        lambda capture: capture.add(*DOWN, ACK, TOLD + 1400, ASKED, bytes(1400), b"")
    ),
    "each SYN-ACK came": load(synack_ms=SYNACK_MS + 0.5),
    "is larger than the MTU": with_(
        lambda capture: capture.add(*DOWN, ACK, TOLD + 1400, ASKED, bytes(1461), b"", at_ms=212)
    ),
    "dns = hosts, but 1 questions": with_(lambda capture: ask(capture, question("www.page.test"))),
    "but the server ended 1 of 1 connections by itself": with_(
        lambda capture: capture.add(*DOWN, ACK | FIN, TOLD + 1400, ASKED, b"", b"", at_ms=212)
    ),
}


@pytest.mark.parametrize("sentence", CONTRADICTIONS)
def test_what_the_capture_contradicts(tmp_path: Path, sentence: str) -> None:
    assert said(problems(tmp_path, CONTRADICTIONS[sentence]), sentence)
    assert not said(problems(tmp_path, load()), sentence)


def test_what_the_server_s_log_contradicts(tmp_path: Path) -> None:
    once = replace(CONDITION, tcp=TcpSpec(requests_per_connection=2))
    ends = (f"{CLIENT}:2000", f"{SERVER}:80")
    asked_close = replace(SEEN, connections=(ServedConnection(*ends, 1, asked_close=True),))
    assert said(problems(tmp_path, load(), asked_close, once), "the client asked to end 1 of 1")
    many = replace(SEEN, replay=Replay(3, most_per_connection=3))
    assert said(problems(tmp_path, load(), many, once), "a connection carried 3 requests")


def test_what_the_trial_and_the_kernels_say_themselves(tmp_path: Path) -> None:
    own = replace(SEEN, problems=("a body was not sent as recorded",))
    assert "a body was not sent as recorded" in problems(tmp_path, load(), own)
    counters = {**(SEEN.counters or {}), "client": {"TcpActiveOpens": 2}}
    assert said(problems(tmp_path, load(), replace(SEEN, counters=counters)), "TcpActiveOpens grew")


def test_what_crossed_the_link_otherwise_than_it_counts(tmp_path: Path) -> None:
    """The server sent one packet more than came, and the link says of none that it was dropped."""
    capture = load()
    own = [
        (at_ns + (1 if frame[26:30] == inet_aton(CLIENT) else -1) * 51_000_000, frame)
        for at_ns, frame in capture.packets
    ]
    vanished = Capture()
    vanished.add(*DOWN, ACK, TOLD + 1400, ASKED, bytes(1400), b"", at_ms=160)
    capture.write(tmp_path / "client.pcap")
    trial = Trial(CONDITION, 0, 0, "virtual", "7.3")
    sentence = "down: 1 packets did not come through, the link counts 0"
    for sent, told in ((own, False), ([*own, *vanished.packets], True)):
        write_frames(tmp_path / "server.pcap", sent, snap=RECORDED_BYTES)
        proof = judge(trial, SEEN, tmp_path).proof
        assert proof is not None
        assert said(proof.problems, sentence) is told
        assert (proof.queueing["down"].dropped, proof.queueing["up"].packets) == (told, 3)


def test_in_real_time_the_line_is_not_judged_by_the_capture(tmp_path: Path) -> None:
    late = load(synack_ms=SYNACK_MS + 0.5)
    keep(late, tmp_path)
    proof = judge(Trial(CONDITION, 0, 0, "host", "6.1"), SEEN, tmp_path).proof
    assert proof is not None and not said(proof.problems, "each SYN-ACK came")


def test_where_the_link_dropped_packets_a_flight_may_have_been_longer(tmp_path: Path) -> None:
    def stopped(traffic: dict[str, int]) -> bool:
        capture = load(segments=3)
        capture.add(*DOWN, ACK, TOLD + 4200, ASKED, bytes(1400), b"", at_ms=330)
        lab = LabReading((), {}, traffic=traffic)
        return said(problems(tmp_path, capture, replace(SEEN, lab=lab)), "stopped after 3 segments")

    assert stopped({"down.delivered": 9})
    assert not stopped({"down.dropped": 1}) and not stopped({"down.lost": 1})


def test_without_a_log_there_is_neither_a_load_nor_a_proof(tmp_path: Path) -> None:
    keep(load(), tmp_path)
    trial = Trial(CONDITION, 0, 0, "virtual", "7.3")
    judgement = judge(trial, replace(SEEN, replay=None), tmp_path)
    assert (judgement.measured, judgement.proof) == (None, None)
    assert judge(trial, SEEN, tmp_path).measured == LOAD
