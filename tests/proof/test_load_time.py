"""Load times against captures, requests at the server, and handshakes unlike the others."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.capture.flows import read_flows
from testbed.capture.packets import read_capture
from testbed.kinds.command.judgement import CommandEvidence, CommandObservation, check_duration
from testbed.kinds.command.measurement import Executed
from testbed.kinds.command.spec import LabCommand
from testbed.model import (
    KEPT_ALIVE_S,
    LinkSpec,
    PageLoad,
    Replay,
    RequestTiming,
    ServedConnection,
    Trial,
)
from testbed.proof.browser_log import BrowserLog
from testbed.proof.captures import check_strangers
from testbed.proof.load_time import check_counts, check_load_time, new_bytes
from testbed.proof.openings import check_openings
from testbed.proof.visits import split_visits
from tests.capture.packets import ACK, CLIENT, FIN, PUSH, REQUEST, SERVER, START_NS, Capture, Visit
from tests.capture.quic import conversation, short, stream
from tests.evidence import found

US = (CLIENT, 2000)
UP, DOWN = (US, (SERVER, 80)), ((SERVER, 80), US)
SERVED = (ServedConnection(f"{CLIENT}:2000", f"{SERVER}:80", 1),)
ADDRESS = [socket.inet_aton(CLIENT)]
# Without framing a SYN of 44 bytes takes 0.35 ms at 1 Mbit/s, a frame of 1,000 bytes 8 ms.
LINK = LinkSpec(rtt_ms=10.0, down_kbit=1000, up_kbit=1000, framing_bytes=0)
DATA = bytes(1000 - 40)


def a_load(ended_ms: float = 40.0) -> tuple[Capture, Visit]:
    """A request at 20 ms, answered in two packets: the last byte comes at ``ended_ms``."""
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.open()
    capture.add(*UP, ACK | PUSH, visit.isn + 1, 5001, REQUEST, b"", 20.0)
    for number, at_ms in enumerate((ended_ms - 8, ended_ms)):
        capture.add(*DOWN, ACK, 5001 + 960 * number, visit.isn + 39, DATA, b"", at_ms)
    return capture, visit


def load(plt_ms: float, *ends_ms: float, **more: object) -> PageLoad:
    """A load of ``graph`` whose requests ended then."""
    requests = tuple(RequestTiming("http://a/", 200, 0.0, end, 1000, "1") for end in ends_ms)
    return replace(PageLoad("graph", "1", plt_ms, requests), **more)  # type: ignore[arg-type]


def problems(capture: Capture, told: PageLoad, folder: Path, *, real: bool = False) -> list[str]:
    return found(
        check_load_time, kernel="host" if real else "virtual", clients=ADDRESS, served=SERVED,
        visits=split_visits(told), capture=capture.read(folder), flows=capture.flows(folder),
    )  # fmt: skip


@pytest.mark.parametrize("plt_ms", [39.95, 40.0, 40.05])
def test_a_load_that_ended_with_its_last_byte(tmp_path: Path, plt_ms: float) -> None:
    capture, _ = a_load()
    assert problems(capture, load(plt_ms, plt_ms), tmp_path) == []


@pytest.mark.parametrize(("kept", "counts"), [(False, True), (True, False)])
def test_data_that_overtook_and_was_thrown_away_counts_when_it_comes_again(
    tmp_path: Path, kept: bool, counts: bool
) -> None:
    capture, visit = a_load()
    acked = 5001 + 960 * (2 if kept else 1)
    capture.add(*UP, ACK, visit.isn + 39, acked, b"", b"", 41.0)
    capture.add(*DOWN, ACK, 5961, visit.isn + 39, DATA, b"", 60.0)
    assert (problems(capture, load(60.0, 60.0), tmp_path) == []) is counts
    assert (problems(capture, load(40.0, 40.0), tmp_path) == []) is not counts


def test_data_before_a_lost_synack_is_no_response(tmp_path: Path) -> None:
    """It comes again, and the load ends with that (RFC 9293 section 3.10.7.3)."""
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn(REQUEST, b"12345678", at_ms=0)
    for at_ms in (20.0, 1400.0):
        capture.add(*DOWN, ACK, 5001, visit.isn + 39, DATA, b"", at_ms)
        if at_ms == 20.0:
            visit.synack(len(REQUEST), at_ms=1020)
    assert problems(capture, load(1400.0, 1400.0), tmp_path) == []
    assert problems(capture, load(20.0, 20.0), tmp_path) != []


@pytest.mark.parametrize("plt_ms", [39.8, 40.2])
def test_a_load_that_ended_at_another_time(tmp_path: Path, plt_ms: float) -> None:
    capture, _ = a_load()
    assert problems(capture, load(plt_ms, 40.0), tmp_path) == [
        f"the load ended after {plt_ms:.3f} ms by its client, the capture's last byte came after "
        "40.000 ms"
    ]


def test_a_browser_may_end_before_its_last_request(tmp_path: Path) -> None:
    capture, _ = a_load()
    browser = {"client": "chromium", "browser": {"task_s": 0.1}}
    assert problems(capture, load(33.0, 32.0, 40.0, **browser), tmp_path) == []


def test_what_comes_after_the_load_event_is_the_page_s_own(tmp_path: Path) -> None:
    """Of a request that began later, or that never ended, and of no other."""
    capture, _ = a_load()
    told = load(33.0, 32.0, client="chromium", browser={"task_s": 0.001})
    assert problems(capture, told, tmp_path) != []
    for status, end_ms in ((200, 40.0), (0, 35.0)):
        later = replace(told.requests[0], status=status, start_ms=35.0, end_ms=end_ms)
        assert problems(capture, replace(told, requests=(*told.requests, later)), tmp_path) == []


@pytest.mark.parametrize(
    ("busy_s", "document", "fired_ms", "wrong"),
    [(0.1, b"<p>", 120.1, False), (0.01, b"<p>", 120.1, True), (0.1, b"<p>", 121.0, True),
     (0.01, b"<audio preload=auto>", 120.1, False)],
    ids=["computing", "too little", "DevTools says otherwise", "waiting"],
)  # fmt: skip
def test_a_load_event_that_no_byte_triggers(
    tmp_path: Path, busy_s: float, document: bytes, fired_ms: float, wrong: bool
) -> None:
    capture, _ = a_load()
    told = load(120.0, 40.0, client="chromium", browser={"task_s": busy_s})
    (tmp_path / "body").write_bytes(document)
    root = SimpleNamespace(headers=(), body=tmp_path / "body")
    visits = split_visits(told)
    page = {"pageTimings": {"_loadEventFired": fired_ms}}
    said = found(
        check_load_time, kernel="virtual", clients=ADDRESS, served=SERVED, visits=visits,
        load=told, logs=(BrowserLog(visits[0], (), (), page),),
        archive=SimpleNamespace(entries=(root,)),
        capture=capture.read(tmp_path), flows=capture.flows(tmp_path),
    )  # fmt: skip
    assert bool(said) is wrong, said


def test_a_request_that_ended_when_nothing_came(tmp_path: Path) -> None:
    capture, _ = a_load()
    said = "1 of 2 times that the client tells are not those of bytes in the capture: 35.000 ms"
    assert problems(capture, load(40.0, 35.0, 40.0), tmp_path) == [said]
    said = "1 of 2 times that the client tells are not those of bytes in the capture: 5.000 ms"
    assert problems(capture, load(40.0, 40.0, ttfb_ms=5.0), tmp_path) == [said]


def test_a_response_over_quic_may_wait_for_what_its_headers_refer_to(tmp_path: Path) -> None:
    """It is whole when the stream of QPACK is (RFC 9204 section 2.1.2), which was lost before."""
    made = conversation()
    asked = len(made.datagrams)
    made.add(short(0, stream(b"ask", fin=True), by_client=True), by_client=True)
    sent = [stream(b"answer", fin=True), *[b"\x01"] * 10, stream(b"of QPACK", 7)]
    for count, frames in enumerate(sent):
        made.add(short(count, frames, by_client=False), by_client=False)
    (connection,) = quic = made.read(tmp_path)
    capture = read_capture(tmp_path / "client.pcap")
    served = (ServedConnection(connection.client, connection.server, 1),)

    def problems_at(end_ms: float) -> list[str]:
        told = load(end_ms, end_ms, client="chromium", browser={"task_s": 0.1})
        return found(
            check_load_time, clients=ADDRESS, served=served, visits=split_visits(told), quic=quic,
            capture=capture, flows=read_flows(capture, ADDRESS),
        )  # fmt: skip

    end_ms = float(asked + len(sent))
    assert problems_at(end_ms) == []
    late_ms = end_ms + 12
    assert [problem.split(",")[0] for problem in problems_at(late_ms)] == [
        f"the load ended after {late_ms:.3f} ms by its client",
        "1 of 1 times that the client tells are not those of bytes in the capture: "
        f"{late_ms:.3f} ms",
    ]


def test_bytes_that_came_again_and_behind_the_client_s_end_do_not_count(tmp_path: Path) -> None:
    capture, visit = a_load()
    capture.add(*DOWN, ACK, 5001, visit.isn + 39, DATA, b"", 60.0)
    capture.add(*UP, FIN | ACK, visit.isn + 39, 6921, b"", b"", 61.0)
    capture.add(*DOWN, ACK, 6921, visit.isn + 39, DATA, b"", 70.0)
    assert problems(capture, load(40.0, 40.0), tmp_path) == []


def test_in_real_time_computing_may_follow(tmp_path: Path) -> None:
    capture, _ = a_load()
    busy = {"task_s": 0.5}
    assert problems(capture, load(1500.0, 40.0, browser=busy), tmp_path, real=True) == []
    assert len(problems(capture, load(1600.0, 40.0, browser=busy), tmp_path, real=True)) == 1
    assert len(problems(capture, load(39.0, 39.0), tmp_path, real=True)) == 1


def test_a_capture_without_an_answer(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open()
    said = "the capture has no byte of a response"
    assert problems(capture, load(40.0, 40.0), tmp_path) == [said]


def test_a_command_that_took_less_than_its_packets(tmp_path: Path) -> None:
    capture, _ = a_load()
    trial = Trial(LabCommand("p", "command"), 0, 0, "virtual", "7.3")

    def said(duration_ms: float) -> list[str]:
        shown = {"capture": capture.read(tmp_path), "flows": capture.flows(tmp_path)}
        observed = CommandObservation(executed=Executed(0, duration_ms, 0, 0))
        return list(check_duration(
            CommandEvidence(trial, observed, tmp_path, tuple(ADDRESS), shown=shown)
        ))  # fmt: skip

    assert said(40.0) == []
    assert said(39.9) == ["the command took 39.900 ms, and its packets 40.000 ms"]


def test_both_ends_count_the_same_requests() -> None:
    two = load(40.0, 40.0, 40.0)

    def said(told: PageLoad, *replay: Any) -> list[str]:
        return found(check_counts, load=told, replay=Replay(*replay))

    assert said(two, 2, (), ()) == []
    assert said(two, 1, (), ("GET http://a/",)) == []
    assert said(load(40.0), 2, (), ()) == []  # it names none
    assert said(two, 1, (), ()) == ["the client names 2 answered requests, the server answered 1"]
    assert said(two, 3, (), ()) == ["the server answered 3 requests, the client names 2"]


def test_a_handshake_unlike_the_others(tmp_path: Path) -> None:
    capture = Capture()
    for port in (2000, 2001, 2002):
        Visit(capture, port).open()
    assert found(check_openings, LINK, flows=capture.flows(tmp_path)) == []
    capture.add((CLIENT, 2003), (SERVER, 80), 2, 1, 0, b"", b"\x02\x04\x02\xbc")  # MSS 700
    assert found(check_openings, LINK, flows=capture.flows(tmp_path)) == [
        "1 of 4 connections were opened by the client with other TCP options or another window "
        "than the rest"
    ]


def test_an_end_that_was_told_of_the_path_opens_otherwise(tmp_path: Path) -> None:
    capture = Capture()
    for port, mss in ((2000, 1460), (2001, 1360), (2002, 1360)):
        option = b"\x02\x04" + mss.to_bytes(2, "big")
        capture.add((CLIENT, port), (SERVER, 80), 2, 1, 0, b"", option)
    flows = capture.flows(tmp_path)
    assert found(check_openings, replace(LINK, path_mtu_bytes=1400), flows=flows) == []
    for other in (1380, 1500, None):
        assert len(found(check_openings, replace(LINK, path_mtu_bytes=other), flows=flows)) == 1


def strange(capture: Capture, folder: Path) -> list[str]:
    return found(
        check_strangers, load=None, capture=capture.read(folder), flows=capture.flows(folder)
    )


def test_packets_of_no_connection(tmp_path: Path) -> None:
    capture, _ = a_load()
    capture.add((SERVER, 80), (CLIENT, 1999), FIN | ACK, 1, 1, b"", b"")  # a late farewell
    assert strange(capture, tmp_path) == []
    capture.add((SERVER, 9), (CLIENT, 9), ACK, 1, 1, b"who?", b"")
    assert strange(capture, tmp_path) == [
        f"1 packets in the capture are not of the load, the first of them TCP from {SERVER}:9 "
        f"to {CLIENT}:9"
    ]


def test_each_visit_has_its_own_times(tmp_path: Path) -> None:
    """The connection is kept; the second visit's only packet comes 15 ms after it began."""
    capture, visit = a_load()
    capture.add(*UP, ACK | PUSH, visit.isn + 39, 6921, REQUEST, b"", 6000.0)
    capture.add(*DOWN, ACK, 6921, visit.isn + 77, DATA, b"", 6015.0)
    first = replace(load(40.0, 40.0), began_ns=START_NS)
    for last_ms, wrong in ((15.0, []), (40.0, ["40.000", "15.000"]), (6015.0, ["6015.000"])):
        last = load(last_ms, last_ms, began_ns=START_NS + 6_000_000_000, earlier=(first,))
        read, flows = capture.read(tmp_path), capture.flows(tmp_path)
        seen = {"clients": ADDRESS, "served": SERVED, "capture": read, "flows": flows}
        one, other = (
            found(check_load_time, visits=(window,), **seen) for window in split_visits(last)
        )
        assert one == []
        assert bool(other) is bool(wrong)
        assert [part for part in wrong if part not in other[0]] == []


def test_what_ends_an_idle_connection_is_no_response(tmp_path: Path) -> None:
    late_ms = 1000.0 * KEPT_ALIVE_S + 40
    capture, visit = a_load()
    capture.add(*DOWN, ACK, 6921, visit.isn + 39, b"end", b"", late_ms)
    assert problems(capture, load(40.0, 40.0), tmp_path) == []
    assert problems(capture, load(late_ms), tmp_path) != []


def test_what_headers_refer_to_is_no_reason_for_an_end_before_the_last_byte(tmp_path: Path) -> None:
    made = conversation()
    made.add(short(0, stream(b"ask", fin=True), by_client=True), by_client=True)
    told_ms = float(len(made.datagrams))
    sent = [stream(b"of QPACK", 7), *[b"\x01"] * 20, stream(b"answer", fin=True)]
    for count, frames in enumerate(sent):
        made.add(short(count, frames, by_client=False), by_client=False)
    (connection,) = quic = made.read(tmp_path)
    capture = read_capture(tmp_path / "client.pcap")
    told = load(told_ms, told_ms, client="chromium", browser={"task_s": 0.1})
    said = found(
        check_load_time, clients=ADDRESS, visits=split_visits(told), quic=quic, capture=capture,
        served=(ServedConnection(connection.client, connection.server, 1),),
        flows=read_flows(capture, ADDRESS),
    )  # fmt: skip
    assert said == [
        f"the load ended after {told_ms:.3f} ms by its client, the capture's last byte came after "
        f"{told_ms + 21:.3f} ms"
    ]


WHOLE = b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + bytes(8) + b"\x01\x03\x03\x07"
"""MSS, SACK permitted, timestamps and window scale."""


@pytest.mark.parametrize(
    "other",
    [WHOLE[:4] + b"\x01\x01" + WHOLE[6:], WHOLE[:6] + b"\x01" * 10 + WHOLE[16:],
     WHOLE[:-1] + b"\x08", WHOLE[:3] + b"\xb0" + WHOLE[4:]],
    ids=["no SACK", "no timestamps", "another scale", "another MSS"],
)  # fmt: skip
def test_each_option_of_an_opening_counts(tmp_path: Path, other: bytes) -> None:
    capture = Capture()
    for port in range(2000, 2003):
        capture.add((CLIENT, port), (SERVER, 80), 2, 1, 0, b"", WHOLE)
    assert found(check_openings, LINK, flows=capture.flows(tmp_path)) == []
    capture.add((CLIENT, 2003), (SERVER, 80), 2, 1, 0, b"", other)
    (said,) = found(check_openings, LINK, flows=capture.flows(tmp_path))
    assert said.startswith("1 of 4 connections were opened by the client with other TCP options")


@pytest.mark.parametrize(
    ("client", "early_ms", "late_ms"),
    [("graph", 0.1, 0.1), ("wget2", 1.1, 3.0), ("chromium", 1.0, 5.0)],
)
def test_each_client_s_slack(tmp_path: Path, client: str, early_ms: float, late_ms: float) -> None:
    """As docs/accuracy.md has it: a larger one would let another load time be printed."""
    capture, _ = a_load()
    more: dict[str, Any] = {"browser": {"task_s": 0.1}} if client == "chromium" else {}
    for off_ms, wrong in (
        (-early_ms - 0.01, True), (0.01 - early_ms, False),
        (late_ms - 0.01, False), (late_ms + 0.01, True),
    ):  # fmt: skip
        end_ms = 40 + off_ms
        told = load(end_ms, end_ms, client=client, **more)
        assert bool(problems(capture, told, tmp_path)) is wrong
    late = load(40 + late_ms + 5.01, 40.0, client="chromium", **more)
    assert problems(capture, late, tmp_path) != []


def test_what_a_ticket_occupies_is_no_answer_and_what_is_around_it_is(tmp_path: Path) -> None:
    capture, _ = a_load()
    (flow,) = capture.flows(tmp_path).flows
    first, last = new_bytes(flow)
    assert (last - first) / 1e6 == pytest.approx(8)
    size = len(DATA)
    for place, left in (
        ((0, size), [last]), ((size, 2 * size), [first]), ((0, 2 * size), []),
        ((1, 2 * size), [first]), ((0, 2 * size - 1), [last]),
    ):  # fmt: skip
        assert list(new_bytes(flow, [place])) == left
