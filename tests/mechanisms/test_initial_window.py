"""The server's first flight, in time: when it says what the initial window was, and when not."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.capture.flows import Flows
from testbed.mechanisms.initial_window.proof import (
    Flight,
    check_first_flights,
    first_flights,
    measure,
)
from testbed.model import LinkSpec, TcpSpec
from tests.capture.packets import ACK, CLIENT, REQUEST, SERVER, Capture, Visit
from tests.evidence import evidence, found

LINK = LinkSpec(rtt_ms=100.0)
EACH_MS = 3.0  # of a segment of 1500 bytes at 4 Mbit/s
SIZE = 1460
UP, DOWN = ((CLIENT, 2000), (SERVER, 80)), ((SERVER, 80), (CLIENT, 2000))
ASKED, TOLD = 0xFFFFFFF1 + len(REQUEST), 5001
FIRST_MS, ANSWERED_MS = 210.0, 210.1


def requested() -> Capture:
    """A connection with its request, which leaves at 101 ms."""
    capture = Capture()
    Visit(capture, 2000).open(at_ms=0)
    capture.add(*UP, ACK, ASKED - len(REQUEST), TOLD, REQUEST, b"", at_ms=101)
    return capture


def flight(
    count: int, *, then_ms: float | None = 311.6, more: bytes = b"", each_ms: float = EACH_MS
) -> Capture:
    """``count`` segments, ``each_ms`` apart, acknowledged, and one more at ``then_ms``."""
    capture = requested()
    answer(capture, 0, FIRST_MS)
    capture.add(*UP, ACK, ASKED, TOLD + SIZE, more, b"", at_ms=ANSWERED_MS)
    for number in range(1, count):
        answer(capture, number, FIRST_MS + each_ms * number)
    if then_ms is not None:
        answer(capture, count, then_ms)
    return capture


def answer(capture: Capture, number: int, at_ms: float) -> None:
    capture.add(*DOWN, ACK, TOLD + SIZE * number, ASKED, bytes(SIZE), b"", at_ms=at_ms)


def judged(flows: Flows, window: int, counted: dict[str, int] | None = None) -> list[str]:
    """What is wrong with first flights; both ends have all packets."""
    tcp = TcpSpec(initcwnd_segments=window)
    return found(check_first_flights, LINK, tcp, flows=flows, at_server=None, counted=counted or {})


def judge(capture: Capture, tmp_path: Path, window: int, *, whole: bool = True) -> str:
    flows = capture.flows(tmp_path)
    counted = {} if whole else {"down.dropped": 1}
    return "; ".join(judged(flows, window, counted))


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_flight_of_the_window(tmp_path: Path, count: int) -> None:
    flows = flight(count).flows(tmp_path)
    (flow,) = flows.flows
    assert measure(flow, flows, LINK) == Flight(count, stopped=True)
    assert judged(flows, count) == []
    seen = evidence(LINK, flows=flows, at_server=None)
    assert [flight.segments for flight in first_flights(seen)] == [count]


def test_a_smaller_window(tmp_path: Path) -> None:
    assert judge(flight(3), tmp_path, 10) == (
        "the first flights of 1 of 1 connections stopped after 3 segments, "
        "asked was an initial window of 10"
    )
    # What the link dropped may have belonged to it.
    assert judge(flight(3), tmp_path, 10, whole=False) == ""


@pytest.mark.parametrize("count", [11, 12])
def test_a_larger_window(tmp_path: Path, count: int) -> None:
    assert judge(flight(count), tmp_path, 10) == (
        f"the first flights of 1 of 1 connections have up to {count} segments, "
        "asked was an initial window of 10"
    )


def test_a_short_answer_and_a_server_that_waited_for_the_client(tmp_path: Path) -> None:
    assert judge(flight(3, then_ms=None), tmp_path, 10) == ""
    assert judge(flight(3, more=REQUEST), tmp_path, 10) == ""


def test_the_link_was_busy(tmp_path: Path) -> None:
    capture = flight(3, then_ms=None)
    for number in range(60):  # another connection's
        ends = ((SERVER, 80), (CLIENT, 2001))
        capture.add(*ends, ACK, number, 0, bytes(SIZE), b"", at_ms=219 + EACH_MS * number)
    answer(capture, 3, 219 + EACH_MS * 60)
    assert judge(capture, tmp_path, 10) == ""


def test_a_segment_was_sent_again(tmp_path: Path) -> None:
    capture = flight(3, then_ms=None)
    answer(capture, 0, 300)
    answer(capture, 3, 400)
    assert judge(capture, tmp_path, 10) == ""


def lossy(count: int, *lost: int, then_ms: float = 300.0) -> Capture:
    """A flight of ``count`` segments on a link that lost some, told of one by one (RFC 2018).

    Two more leave when the server hears of two (RFC 3042), and come at ``then_ms``.
    """
    capture = requested()
    came = [number for number in range(count) if number not in lost]
    in_order = next(number for number in range(count + 1) if number not in came)
    for number in came:
        at_ms = FIRST_MS + EACH_MS * number
        answer(capture, number, at_ms)
        acknowledged = TOLD + SIZE * min(number + 1, in_order)
        capture.add(*UP, ACK, ASKED, acknowledged, b"", b"", at_ms=at_ms)
    for more in (0, 1):
        answer(capture, count + more, then_ms + EACH_MS * more)
    return capture


@pytest.mark.parametrize("lost", [(0,), (0, 1), (4,), (0, 9), (9,)])
def test_what_the_link_lost_of_a_flight_is_counted_with_it(
    tmp_path: Path, lost: tuple[int, ...]
) -> None:
    """Behind a lost first segment the client acknowledges nothing new, and is answered."""
    assert judge(lossy(10, *lost, then_ms=420.0), tmp_path, 10, whole=False) == ""


@pytest.mark.parametrize("lost", [(), (0,), (0, 1), (4,), (0, 9)])
def test_a_larger_window_on_a_lossy_link(tmp_path: Path, lost: tuple[int, ...]) -> None:
    many = f" ({len(lost)} of them lost)" if lost else ""
    assert judge(lossy(11, *lost, then_ms=420.0), tmp_path, 10, whole=False) == (
        f"the first flights of 1 of 1 connections have up to 11 segments{many}, "
        "asked was an initial window of 10"
    )


def test_a_larger_window_whose_end_was_lost(tmp_path: Path) -> None:
    """What followed an answer says nothing of what the window was."""
    assert judge(lossy(11, 10, then_ms=420.0), tmp_path, 10, whole=False) == ""


def test_a_probe_behind_a_flight_that_was_lost_as_a_whole(tmp_path: Path) -> None:
    """It has new data, and comes two round trips later at the least (RFC 8985, section 7.2)."""
    capture = requested()
    answer(capture, 10, 402.0)
    assert judge(capture, tmp_path, 10, whole=False) == ""
    assert "up to 10 segments (10 of them lost)" in judge(capture, tmp_path, 9, whole=False)


def test_data_before_the_synack_is_no_flight(tmp_path: Path) -> None:
    """The client throws it away, and the server begins again with one segment (RFC 6298)."""
    capture = Capture()
    visit = Visit(capture, 2000)
    visit.syn(REQUEST, b"12345678", at_ms=0)
    for number in range(3):
        answer(capture, number, 103 + EACH_MS * number)
    visit.syn(at_ms=1000)
    visit.synack(len(REQUEST), at_ms=1102)
    for number, at_ms in ((0, 1500), (1, 1606), (2, 1609)):
        answer(capture, number, at_ms)
        capture.add(*UP, ACK, ASKED, TOLD + SIZE * (number + 1), b"", b"", at_ms=at_ms)
    flows = capture.flows(tmp_path)
    assert measure(flows.flows[0], flows, LINK) == Flight(1, stopped=False)


def test_the_clients_window_was_full(tmp_path: Path) -> None:
    # dpkt's default window is 65,535 bytes: room for 44 segments, and not for one more.
    assert judge(flight(43, then_ms=380, each_ms=2), tmp_path, 100) != ""
    assert judge(flight(44, then_ms=380, each_ms=2), tmp_path, 100) == ""


def test_no_data(tmp_path: Path) -> None:
    capture = Capture()
    Visit(capture, 2000).open()
    assert judged(capture.flows(tmp_path), 10) == []
