"""Waits for timers: what was sent again, by either end or a resolver, and how long it took."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from testbed.capture.waits import read_waits
from testbed.model import KEPT_ALIVE_S, Waits
from tests.capture.packets import ACK, CLIENT, PUSH, REQUEST, SERVER, START_NS, Capture, Visit
from tests.mechanisms.test_names import ask, question

MS = 1_000_000
SEGMENT = bytes(1448)


class Load(Capture):
    """One connection, opened at 0 ms, whose request of 38 bytes leaves at 1 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.visit = Visit(self, 2000)
        self.visit.open()
        self.up(2)

    def up(self, at_ms: float) -> None:
        ends = (CLIENT, 2000), (SERVER, 80)
        self.add(*ends, ACK | PUSH, self.visit.isn + 1, 5001, REQUEST, b"", at_ms)

    def down(self, segment: int, at_ms: float) -> None:
        ends = (SERVER, 80), (CLIENT, 2000)
        self.add(*ends, ACK, 5001 + 1448 * segment, self.visit.isn + 39, SEGMENT, b"", at_ms)

    def waits(self, folder: Path, client: int = 0, server: int = 0) -> Waits:
        """What is read of it if the kernels counted so many time-outs."""
        counters = {"client": {"TcpExtTCPTimeouts": client},
                    "server": {"TcpExtTCPTimeouts": server}}  # fmt: skip
        return read_waits(self.read(folder), self.flows(folder), counters)


def test_a_hole_filled_after_a_probe(tmp_path: Path) -> None:
    load = Load()
    for segment, at_ms in ((0, 22), (1, 25), (4, 580), (2, 1150), (3, 1153), (5, 1156)):
        load.down(segment, at_ms)
    assert load.waits(tmp_path, server=1) == Waits(0, 1, 0, 1125 * MS)


def test_without_a_time_out_nothing_waited(tmp_path: Path) -> None:
    load = Load()
    for segment, at_ms in ((0, 22), (2, 25), (1, 700)):
        load.down(segment, at_ms)
    assert load.waits(tmp_path) == Waits(0, 0, 0, 0)


def test_a_whole_answer_that_the_link_dropped(tmp_path: Path) -> None:
    load = Load()
    load.down(0, 402)
    assert load.waits(tmp_path, server=1) == Waits(0, 1, 0, 400 * MS)


def test_a_segment_that_was_needless_ends_no_wait(tmp_path: Path) -> None:
    load = Load()
    for segment, at_ms in ((0, 12), (0, 900), (1, 901)):
        load.down(segment, at_ms)
    assert load.waits(tmp_path, client=1).longest_ns == 0


@pytest.mark.parametrize("again_ms", [302, 1002])
def test_a_request_sent_again(again_ms: int, tmp_path: Path) -> None:
    load = Load()
    load.up(again_ms)
    load.down(0, again_ms + 20)
    load.down(2, again_ms + 23)
    assert load.waits(tmp_path, client=1) == Waits(1, 0, 0, (again_ms - 2) * MS)


def test_a_syn_sent_again(tmp_path: Path) -> None:
    load = Load()
    other = Visit(load, 3000)
    for at_ms in (10, 1010, 3010):
        other.syn(at_ms=at_ms)
    other.synack(0, at_ms=3030)
    assert load.waits(tmp_path, client=2) == Waits(2, 0, 0, 3000 * MS)


def test_sequence_numbers_run_over(tmp_path: Path) -> None:
    load = Capture()
    visit = Visit(load, 2000, server_isn=0xFFFFFFF0)
    visit.open()
    ends = (SERVER, 80), (CLIENT, 2000)
    for segment, at_ms in ((0, 22), (2, 25), (1, 700), (3, 703)):
        load.add(*ends, ACK, 0xFFFFFFF1 + 1448 * segment, visit.isn + 1, SEGMENT, b"", at_ms)
    counters = {"client": {}, "server": {"TcpExtTCPTimeouts": 1}}
    waits = read_waits(load.read(tmp_path), load.flows(tmp_path), counters)
    assert waits.longest_ns == 678 * MS


def ask_at(capture: Capture, at_ms: float, name: str = "cdn.page.test") -> None:
    """A question for a name at a time."""
    ask(capture, question(name))
    capture.packets[-1] = (START_NS + round(at_ms * MS), capture.packets[-1][1])


def answer(capture: Capture, message: bytes) -> None:
    """The name server's answer, which repeats the question."""
    ask(capture, message)
    at_ns, frame = capture.packets.pop()
    ends = frame[26:30], frame[30:34]
    ports = frame[34:36], frame[36:38]
    turned = frame[:26] + ends[1] + ends[0] + ports[1] + ports[0] + frame[38:]
    capture.packets.append((at_ns, turned))


def test_a_lost_question(tmp_path: Path) -> None:
    load = Load()
    ask_at(load, 10)
    ask(load, question("img.page.test"))
    answer(load, question("img.page.test"))
    ask_at(load, 5010, "CDN.page.test")
    answer(load, question("CDN.page.test"))
    ask_at(load, 9000)
    assert socket.inet_aton(CLIENT) in load.packets[-1][1]
    assert load.waits(tmp_path) == Waits(0, 0, 1, 5000 * MS)


def test_two_look_ups_at_once_lose_nothing(tmp_path: Path) -> None:
    load = Load()
    for _ in range(2):
        ask(load, question("cdn.page.test"))
    assert load.waits(tmp_path).lost_questions == 0


@pytest.mark.parametrize(("after_ms", "lost"), [(999, 0), (1000, 1)])
def test_a_resolver_waits_for_a_second_at_least(tmp_path: Path, after_ms: int, lost: int) -> None:
    load = Load()
    for at_ms in (10, 10 + after_ms):
        ask_at(load, at_ms)
    assert load.waits(tmp_path) == Waits(0, 0, lost, lost * after_ms * MS)


def test_data_before_a_lost_synack_ends_no_wait(tmp_path: Path) -> None:
    """The client without a connection throws it away: it stood still until it came again."""
    load = Capture()
    visit = Visit(load, 2000)
    ends = (SERVER, 80), (CLIENT, 2000)
    visit.syn(REQUEST, b"12345678", at_ms=0)
    load.add(*ends, ACK, 5001, visit.isn + 39, SEGMENT, b"", 23)
    visit.syn(at_ms=1000)
    visit.synack(len(REQUEST), at_ms=1021)
    load.add(*ends, ACK, 5001, visit.isn + 39, SEGMENT, b"", 2321)
    counters = {"client": {"TcpExtTCPTimeouts": 1}, "server": {"TcpExtTCPTimeouts": 1}}
    waits = read_waits(load.read(tmp_path), load.flows(tmp_path), counters)
    assert waits.longest_ns == 1300 * MS


def test_a_farewell_after_an_idle_time_is_no_wait(tmp_path: Path) -> None:
    """The alert with which a server ends TLS, after it was idle between two visits."""
    load = Load()
    load.down(0, 22)
    idle_ms = KEPT_ALIVE_S * 1000
    load.down(1, 22 + idle_ms)
    assert load.waits(tmp_path, server=1).longest_ns == 20 * MS
    # Sooner nobody ends it, and the wait was one.
    sooner = Load()
    sooner.down(0, 22)
    sooner.down(1, idle_ms // 2 - 2000)
    assert sooner.waits(tmp_path, server=1).longest_ns == (idle_ms // 2 - 2022) * MS
