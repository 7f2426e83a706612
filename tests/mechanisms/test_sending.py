"""Silence of servers in captures made by hand: who may wait, and who may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.flows import read_flows
from testbed.capture.packets import ACK, FIN, SYN, Capture, Packet
from testbed.capture.quic import HANDSHAKES, ONE_RTT, QuicConnection, QuicPacket
from testbed.capture.quic_frames import ACK as ACKS
from testbed.capture.quic_frames import CRYPTO, STREAM, Frame
from testbed.capture.transits import Transit
from testbed.mechanisms.sending import quic
from testbed.mechanisms.sending.proof import silence_ms
from testbed.mechanisms.sending.sender import NEAR_NS, Silence
from testbed.mechanisms.sending.tcp import find_silences
from testbed.model import Condition, LinkSpec, TcpSpec
from tests.evidence import evidence

CLIENT, SERVER = b"\x0a\x00\x00\x02", b"\x0a\x0a\x00\x01"
MSS, SHORT, RTT_NS, REQUEST = 1460, 400, 100_000_000, b"GET / HTTP/1.1\r\n\r\n"
OPTIONS = b"\x02\x04\x05\xb4\x03\x03\x07\x01"
SACK = b"\x01\x01\x05\x0a" + bytes(8)


@dataclass
class Server:
    """The server's end of one connection, which sends as it is told."""

    window: int = 500
    port: int = 80
    packets: list[Packet] = field(default_factory=list)
    sent: int = 1
    now: int = 0

    def __post_init__(self) -> None:
        self._up(SYN, seq=0, options=OPTIONS)
        self._down(SYN | ACK, b"", seq=0, options=OPTIONS)
        self.now += RTT_NS
        self._up(ACK, seq=1, ack=1)
        self._up(ACK, seq=1, ack=1, payload=REQUEST)

    def send(self, segments: int, after_ns: int = 1_000) -> None:
        """Send new segments, the first so long after what happened last."""
        self.now += after_ns
        for _ in range(segments):
            self._down(ACK, bytes(MSS), seq=self.sent)
            self.sent += MSS

    def send_short(self, after_ns: int = 1_000) -> None:
        self.now += after_ns
        self._down(ACK, bytes(SHORT), seq=self.sent)
        self.sent += SHORT

    def take(self, segments: int, *, options: bytes = b"") -> None:
        """Take an acknowledgement of all but the last ``segments``."""
        self._up(ACK, 1 + len(REQUEST), self.sent - segments * MSS, options=options)

    def silences(self, window: int = 10) -> list[Silence]:
        capture = Capture(Path(), tuple(self.packets))
        found = find_silences(read_flows(capture, (CLIENT,)), window)
        return [each for each in found if each.until_ns - each.since_ns > NEAR_NS]

    def _up(
        self, flags: int, seq: int, ack: int = 0, payload: bytes = b"", *, options: bytes = b"",
    ) -> None:  # fmt: skip
        self.packets.append(Packet(
            self.now, b"", 0, "TCP", CLIENT, SERVER, 40 + len(payload), 0, 1024, self.port, payload,
            len(payload), seq, ack, flags, self.window, options,
        ))  # fmt: skip

    def _down(self, flags: int, payload: bytes, seq: int, options: bytes = b"") -> None:
        self.packets.append(Packet(
            self.now, b"", 0, "TCP", SERVER, CLIENT, 40 + len(payload), 0, self.port, 1024, payload,
            len(payload), seq, 1, flags, 500, options,
        ))  # fmt: skip


def test_who_fills_its_window_is_not_silent() -> None:
    server = Server()
    server.send(10)
    for flight in (10, 20, 40):
        server.now += RTT_NS
        server.take(0)
        server.send(2 * flight)
    assert server.silences() == []


def test_a_first_flight_that_stops_short() -> None:
    server = Server()
    server.send(7)
    server.now += RTT_NS
    server.take(0)
    server.send(14)
    (silence,) = server.silences()
    assert silence.ms == pytest.approx(100.001)
    assert silence.why == "0 of at least 17 segments were under way"


@pytest.mark.parametrize(("port", "ms"), [(80, 5.0), (443, 105.0)])
def test_a_short_segment_behind_another(port: int, ms: float) -> None:
    """In clear text nginx holds it back until the other is acknowledged; over TLS it does not."""
    server = Server(port=port)
    server.send_short()
    server.now += RTT_NS
    server.take(0)
    server.send_short(5_000_000)
    assert [each.ms for each in server.silences()] == pytest.approx([ms])


def test_a_small_send_buffer() -> None:
    """Each acknowledgement lets as much out as it covers, and the window never grows."""
    server = Server()
    server.send(10)
    for _ in range(3):
        server.now += RTT_NS
        server.take(0)
        server.send(10)
    assert [round(each.ms) for each in server.silences()] == [100, 100]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_timer_between_two_acknowledgements(share: float) -> None:
    server = Server()
    server.send(10)
    server.now += RTT_NS
    server.take(0)
    server.send(10, after_ns=1_000)
    server.send(10, after_ns=round(share * 40_000_000))
    (*_, last) = server.silences()
    assert last.ms == pytest.approx(share * 40)


def test_a_think_time_counts_from_the_request() -> None:
    server = Server()
    server.send(1, after_ns=7_000_000)
    (silence,) = server.silences()
    assert silence.ms == pytest.approx(7.0)


def test_what_a_closed_window_holds_back() -> None:
    server = Server(window=114)
    server.send(9)
    server.now += RTT_NS
    server.take(0)
    server.send(9)
    assert server.silences() == []
    server.take(4)
    server.send(4, after_ns=9_000_000)
    assert [round(each.ms) for each in server.silences()] == [9]


def test_a_loss_leaves_the_window_unknown_until_it_is_over() -> None:
    server = Server()
    server.send(10)
    server.now += RTT_NS
    server.take(5, options=SACK)
    server.send(1, after_ns=30_000_000)
    assert server.silences() == []
    server.now += RTT_NS
    server.take(0)
    server.send(1, after_ns=50_000_000)
    assert [round(each.ms) for each in server.silences()] == [50]


def test_last_words_of_an_idle_connection() -> None:
    server = Server()
    server.send(3)
    server.now += RTT_NS
    server.take(0)
    server.now += 60_000_000_000
    server._down(ACK, bytes(24), seq=server.sent)
    words = list(server.packets)
    server._down(ACK | FIN, b"", seq=server.sent + 24)
    assert server.silences() == []
    server.packets = words
    assert [round(each.ms) for each in server.silences()] == [60_100]


@pytest.mark.parametrize(("asked", "silent"), [(5, False), (10, True)])
def test_the_first_window_is_the_one_asked_for(asked: int, silent: bool) -> None:
    server = Server()
    server.send(5)
    server.now += RTT_NS
    server.take(0)
    server.send(10)
    assert bool(server.silences(asked)) is silent


def test_what_ends_a_recovery_may_begin_another() -> None:
    server = Server()
    server.send(10)
    server.now += RTT_NS
    server.take(9, options=SACK)
    server.send(10)
    server.now += RTT_NS
    server.take(10, options=SACK)
    server.send(1)
    server.now += RTT_NS
    server.take(4)
    server.send(1, after_ns=6_000_000)
    assert server.silences() == []


@dataclass
class QuicServer:
    """The same of QUIC: packets of 1200 bytes of streams, by their numbers, and what is lost."""

    connection: QuicConnection = field(default_factory=lambda: QuicConnection("c", "s", 0))
    number: int = 0
    now: int = 0
    reached: dict[int, int] = field(default_factory=dict)

    def ask(self, stream: int = 0) -> None:
        self._add(ONE_RTT, Frame(STREAM, stream, 0, REQUEST), by_client=True)

    def send(self, packets: int, *, stream: int = 0, lost: bool = False) -> None:
        for _ in range(packets):
            start = self.reached.get(stream, 0)
            self.reached[stream] = start + 1170
            if lost:
                self.number += 1
            else:
                self.send_bytes(start, stream=stream)

    def send_bytes(self, start: int, *, stream: int = 0) -> None:
        self._add(ONE_RTT, Frame(STREAM, stream, start, bytes(1170)), number=self.number)
        self.number += 1

    def take(self, *ranges: tuple[int, int], after_ns: int = RTT_NS) -> None:
        self.now += after_ns
        self._add(ONE_RTT, Frame(ACKS, acked=ranges), by_client=True)

    def shake(self, number: int) -> None:
        self._add(HANDSHAKES, Frame(CRYPTO, 0, 0, bytes(1000)), number=number)

    def silences(self) -> list[int]:
        at = [packet.at_ns for packet in self.connection.packets]
        packets = [Packet(at_ns, b"", 0, "UDP") for at_ns in at]
        crossed = [Transit(p.at_ns, p.at_ns, 0, False, 0, p, p) for p in packets]
        found = quic.find_silences([self.connection], {"up": crossed, "down": crossed}, packets)
        return [round(each.ms) for each in found if each.until_ns - each.since_ns > NEAR_NS]

    def _add(
        self, kind: str, frame: Frame, *, by_client: bool = False, number: int | None = None
    ) -> None:
        place = len(self.connection.packets) + 1
        packet = QuicPacket(self.now, by_client, kind, 1200, number, (frame,), place)
        self.connection.packets.append(packet)


def test_of_quic_who_fills_its_window_is_not_silent() -> None:
    server = QuicServer()
    server.ask()
    server.send(10)
    server.take((0, 9))
    server.send(20)
    assert server.silences() == []
    server.now += RTT_NS
    server.take((0, 29))
    server.send(1)
    server.now += RTT_NS
    server.send(1)
    assert server.silences() == [100]


def test_of_quic_a_loss_leaves_no_room_until_the_server_surely_knows() -> None:
    server = QuicServer()
    server.ask()
    server.send(1)
    server.send(1, lost=True)
    server.send(2)
    server.take((2, 3), (0, 0))
    server.now += 30_000_000
    server.send_bytes(1170)
    server.send(3)
    assert server.silences() == []
    server.take((2, 7), (0, 0))
    server.now += 50_000_000
    server.send(1)
    assert server.silences() == [50]


def test_of_quic_what_is_sent_again_was_lost_at_the_end() -> None:
    server = QuicServer()
    server.ask()
    server.send(3)
    server.send(1, lost=True)
    server.take((0, 2))
    server.now += 3 * RTT_NS
    server.send_bytes(3 * 1170)
    assert server.silences() == []


def test_of_quic_a_handshake_that_is_asked_for_again_may_take_the_window_down() -> None:
    server = QuicServer()
    server.shake(0)
    server.shake(1)
    server.ask()
    server.send(2)
    server.now += RTT_NS
    server.send(1)
    assert server.silences() == []


def test_of_quic_one_stream_may_wait_while_another_is_sent() -> None:
    server = QuicServer()
    server.ask(0)
    server.ask(4)
    for _ in range(4):
        server.send(1)
        server.take((0, server.number - 1), after_ns=200_000)
    server.send(1, stream=4)
    assert server.silences() == [1]


@pytest.mark.parametrize(
    ("asked", "most_ms"),
    [({}, 0.25), ({"jitter": "computing"}, 2.25), ({"server_think_ms": 20.0}, 21.25),
     ({"tcp": TcpSpec(congestion_control="bbr")}, 200.25)],
)  # fmt: skip
def test_how_long_a_server_may_be_silent(asked: dict[str, Any], most_ms: float) -> None:
    condition = Condition("p", "graph", LinkSpec(rtt_ms=100), **asked)
    assert silence_ms(evidence(condition=condition), over_quic=False) == pytest.approx(most_ms)
