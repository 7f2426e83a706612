"""QUIC servers: for how long each could have sent what it sent next (RFC 9002).

The same question as of TCP (``testbed.mechanisms.sending.tcp``), of bytes and of each stream: a
server has room while fewer are under way than its congestion window holds, and than it keeps of a
stream until they are acknowledged.  What was lost it sends again, as soon as it knows and has room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from testbed.capture.packets import Packet
from testbed.capture.quic import ONE_RTT, OTHER, QuicConnection, QuicPacket
from testbed.capture.quic_frames import ACK, CLOSE, CRYPTO, STREAM, Coverage, Frame
from testbed.capture.transits import Transits
from testbed.mechanisms.sending.sender import FULL, LOST_PACKETS, Sender, Silence

PACKET_BYTES = 1200
FIRST_BYTES = 10 * PACKET_BYTES
"""nginx's first window (src/event/quic/ngx_event_quic.c; RFC 9002 section 7.2)."""
STREAM_BYTES = 65_536
"""What nginx keeps of a stream until it is acknowledged (http3_stream_buffer_size)."""
LATER_PACKETS = 3
"""A packet is lost when so many later ones were acknowledged, or half of what was sent since the
oldest that was not (ngx_quic_packet_threshold in ngx_event_quic_ack.c; RFC 9002 section 6.1.1)."""
_ALLOWING = (CRYPTO, STREAM, 0x10, 0x11)
"""Frames of a client that let a server send: with them it asks, or takes more (RFC 9000, 19)."""
Spans = list[tuple[int, int, int]]
"""Bytes of streams: of which, from where and to where."""


@dataclass(slots=True)
class _Stream:
    ready_ns: int | None
    """When it was asked for last, was sent, or had less of it kept than can be."""
    reached: int = 0
    acked: Coverage = field(default_factory=Coverage)


@dataclass(slots=True)
class _Sender(Sender):
    window: float = FIRST_BYTES
    unit: str = "bytes"
    sent: dict[tuple[str, int], tuple[int, Spans]] = field(default_factory=dict)
    """By space and number, the bytes of a packet, and what of which stream was in it."""
    doubtful: set[tuple[str, int]] = field(default_factory=set)
    """Packets that the server may know as lost, or not yet."""
    numbers: dict[str, int] = field(default_factory=dict)
    streams: dict[int, _Stream] = field(default_factory=dict)
    told: defaultdict[str, Coverage] = field(default_factory=lambda: defaultdict(Coverage))
    """By space, what was sent of the handshake."""

    def take(self, packet: QuicPacket) -> None:
        """Note a packet that came from the client."""
        for frame in packet.frames or ():
            if frame.kind == ACK:
                self._acknowledge(packet.space, frame.acked, packet.at_ns)
            elif frame.kind in _ALLOWING:
                self.asked_ns = packet.at_ns
                asks = frame.kind == STREAM and not frame.stream & OTHER
                if asks:
                    self.streams.setdefault(frame.stream, _Stream(packet.at_ns))
                for number, stream in self.streams.items():
                    if not asks or number == frame.stream or number & OTHER:
                        stream.ready_ns = packet.at_ns
        self._look(packet.at_ns)

    def send(self, packet: QuicPacket) -> Silence | None:
        """Note what the server sends; return since when it could have sent it, if it could."""
        if packet.number is not None:
            for number in range(self.numbers.get(packet.space, -1) + 1, packet.number):
                self._doubt((packet.space, number))  # it did not come
            self.numbers[packet.space] = packet.number
        frames = [f for f in packet.frames or () if f.kind not in (ACK, CLOSE)]
        spans = [(f.stream, *_reach(f)) for f in frames if f.kind == STREAM]
        if any(f.kind == CRYPTO and not self.told[packet.space].add(*_reach(f)) for f in frames):
            self._shrink()  # asked again, nginx holds all it sent of the handshake for lost
        silences = []
        for number, _, end in spans:
            stream = self.streams.setdefault(number, _Stream(self.asked_ns))
            if end > stream.reached:
                silences.append(self.silence(stream.ready_ns, packet.at_ns))
                stream.ready_ns, stream.reached = packet.at_ns, end
        if packet.number is not None and frames:
            self.sent[packet.space, packet.number] = packet.size, spans
            self.under_way += packet.size
        if not self.shrunk:
            self.window = max(self.window, self.under_way)
        self._look(packet.at_ns)
        return min(filter(None, silences), default=None)

    def _acknowledge(self, space: str, ranges: Sequence[tuple[int, int]], at_ns: int) -> None:
        filled, before = self.under_way > self.window - 2 * PACKET_BYTES, self.under_way
        for key in [
            key for key in self.sent
            if key[0] == space and any(first <= key[1] <= last for first, last in ranges)
        ]:  # fmt: skip
            for number, start, end in self._forget(key):
                stream = self.streams[number]
                if stream.reached - stream.acked.seen > STREAM_BYTES - 2 * PACKET_BYTES:
                    stream.ready_ns = at_ns  # as much of it was kept as can be
                stream.acked.add(start, end)
        if not self.shrunk:
            self.window += filled * (before - self.under_way)
        if space == ONE_RTT:
            for key in [key for key in self.sent if key[0] != space]:
                self._forget(key)  # with the keys of the handshake (RFC 9001 section 4.9)
        largest = ranges[0][1]
        left = [number for name, number in self.sent if name == space]
        since = self.numbers.get(space, 0) + 1 - min(left, default=0)
        later = max(LATER_PACKETS, since / 2)
        for number in left:
            if number < largest:
                self._doubt((space, number))
            if number <= largest - later:
                self._forget((space, number))

    def _doubt(self, key: tuple[str, int]) -> None:
        """Note that the server may know of a loss; until it surely does there is no room."""
        self.sent.setdefault(key, (0, []))
        self.doubtful.add(key)
        self._shrink()

    def _shrink(self) -> None:
        self.shrunk, self.window, self.room_ns = True, LOST_PACKETS * PACKET_BYTES, None

    def _forget(self, key: tuple[str, int]) -> Spans:
        """Note that a packet is no more under way; return what was in it."""
        size, spans = self.sent.pop(key)
        self.under_way -= size
        self.doubtful.discard(key)
        return spans

    def _look(self, at_ns: int) -> None:
        self.look(at_ns, room=not self.doubtful and self.under_way < FULL * self.window)


def _reach(frame: Frame) -> tuple[int, int]:
    return frame.offset, frame.offset + len(frame.data)


def find_silences(
    connections: Iterable[QuicConnection], transits: Transits, captured: Sequence[Packet]
) -> Iterator[Silence]:
    """Yield for how long each server could have sent its next new bytes.

    ``captured`` are the packets of the client's capture, ``transits`` tell when its packets were at
    the server's end.
    """
    times = {id(each.sent): each.came_ns for each in transits.get("up", ())}
    times |= {id(each.came): each.sent_ns for each in transits.get("down", ())}
    for connection in connections:
        sender = _Sender(connection.name)
        there = [
            packet._replace(at_ns=at_ns)
            for packet in connection.packets
            if (at_ns := times.get(id(captured[packet.place - 1]))) is not None
        ]
        for packet in sorted(there, key=lambda packet: packet.at_ns):
            if packet.by_client:
                sender.take(packet)
            elif (found := sender.send(packet)) is not None:
                yield found
