"""Retransmission timers in connections made by hand: how long an end may wait."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from testbed.capture.flows import Flow
from testbed.capture.packets import ACK, SYN, Packet
from testbed.mechanisms.sending.timers import find_overdue

CLIENT, SERVER = b"\x0a\x00\x00\x02", b"\x0a\x0a\x00\x01"
MSS, RTT_MS, FIRST = 1460, 50, 1 + 20


@dataclass
class Line:
    """A connection in the capture at its server, whose round trips take ``RTT_MS``."""

    now_ms: float = 0
    packets: list[tuple[bool, Packet]] = field(default_factory=list)

    def open(self, synacks: int = 1) -> None:
        """Open the connection, for which the server sends a SYN-ACK so often, each after 1 s."""
        self._up(SYN)
        for _ in range(synacks - 1):
            self._down(0, 0, flags=SYN | ACK)
            self.now_ms += 1000
        self._down(0, 0, flags=SYN | ACK)
        self.now_ms += RTT_MS
        self._up(ACK, ack=1)

    def send(self, *segments: int, after_ms: float = 0) -> None:
        self.now_ms += after_ms
        for each in segments:
            self._down(1 + each * MSS, MSS)

    def take(self, segments: int, after_ms: float = RTT_MS, options: bytes = b"") -> None:
        self.now_ms += after_ms
        self._up(ACK, 1 + segments * MSS, options=options)

    def late(self, by_client: bool = False) -> list[tuple[float, float]]:
        """Return each wait that is longer than its timeout may be, and that, in ms."""
        flow = Flow(self.packets[0][1], self.packets, self.packets[1][1])
        found = find_overdue(flow, by_client=by_client)
        return [(o.waited_ns / 1e6, o.most_ns / 1e6) for o in found if o.waited_ns > o.most_ns]

    def _up(self, flags: int, ack: int = 0, options: bytes = b"", window: int = 500) -> None:
        self.packets.append((True, Packet(
            int(self.now_ms * 1e6), b"", 0, "TCP", CLIENT, SERVER, 40, 0, 1024, 80, b"",
            0, 0 if flags & SYN else FIRST, ack, flags, window, options,
        )))  # fmt: skip

    def _down(self, seq: int, size: int, flags: int = ACK) -> None:
        self.packets.append((False, Packet(
            int(self.now_ms * 1e6), b"", 0, "TCP", SERVER, CLIENT, 40 + size, 0, 80, 1024, b"",
            size, seq, FIRST, flags, 500, b"",
        )))  # fmt: skip


@pytest.fixture
def line() -> Line:
    line = Line()
    line.open()
    return line


@pytest.mark.parametrize(("ms", "late"), [(200, []), (250, []), (260, [(260.0, 250.0)])])
def test_a_lost_segment(line: Line, ms: float, late: list[tuple[float, float]]) -> None:
    """A round trip of 50 ms, and the least timeout of 200 beside it."""
    line.send(0, 1)
    line.send(0, after_ms=ms)
    assert line.late() == late


def test_each_time_it_is_sent_again_doubles_the_timeout(line: Line) -> None:
    line.send(0)
    line.send(0, after_ms=250)
    line.send(0, after_ms=500)
    line.send(0, after_ms=1001)
    assert line.late() == [(1001.0, 1000.0)]


def test_a_tail_loss_probe_doubles_nothing(line: Line) -> None:
    line.send(0, 1)
    line.send(1, after_ms=110)
    line.send(0, after_ms=300)
    assert line.late() == [(300.0, 250.0)]


def test_an_acknowledgement_that_came_behind_the_timeout(line: Line) -> None:
    line.send(0)
    line.take(1, after_ms=400)
    assert line.late() == [(400.0, 250.0)]


def test_a_long_round_trip_that_was_seen_is_allowed_for(line: Line) -> None:
    line.send(0)
    line.take(1, after_ms=240)
    line.send(1)
    line.send(1, after_ms=1000)
    assert line.late() == []


def test_who_has_nothing_to_send_may_wait(line: Line) -> None:
    line.send(0)
    line.take(1)
    line.send(1, after_ms=5000)
    assert line.late() == []


def test_a_closed_window_has_a_timer_of_its_own(line: Line) -> None:
    line.send(0, 1)
    line.now_ms += RTT_MS
    line._up(ACK, 1 + MSS, window=0)
    line.take(2, after_ms=5000)
    assert line.late() == []


def test_until_data_is_acknowledged_a_lost_syn_ack_leaves_three_seconds() -> None:
    line = Line()
    line.open(synacks=2)
    line.send(0)
    line.send(0, after_ms=3100)
    assert line.late() == []


def test_what_is_acknowledged_selectively_is_a_round_trip_as_well(line: Line) -> None:
    line.send(0, 1)
    block = (1 + MSS).to_bytes(4) + (1 + 2 * MSS).to_bytes(4)
    line.take(0, after_ms=240, options=b"\x01\x01\x05\x0a" + block)
    line.send(0, after_ms=700)
    assert line.late() == []
