"""QUIC servers: for how long each could have sent what it sent next (RFC 9002).

The same question as of TCP (``testbed.mechanisms.sending.tcp``), of bytes: a server has room while
fewer are under way than its congestion window holds, and than it keeps of a stream until they are
acknowledged.  A connection is followed up to its first loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from testbed.capture.quic import QuicConnection, QuicPacket
from testbed.capture.quic_frames import ACK, CLOSE, CRYPTO, STREAM, Coverage
from testbed.capture.transits import Transits
from testbed.mechanisms.sending.tcp import FULL, Silence

PACKET_BYTES = 1200
FIRST_BYTES = 10 * PACKET_BYTES
"""nginx's first window (src/event/quic/ngx_event_quic.c; RFC 9002 section 7.2)."""
STREAM_BYTES = 65_536
"""What nginx keeps of a stream until it is acknowledged (http3_stream_buffer_size)."""
_ALLOWING = (CRYPTO, STREAM, 0x10, 0x11)
"""Frames of a client that let a server send: with them it asks, or takes more (RFC 9000, 19)."""
Sent = dict[tuple[str, int], tuple[int, list[tuple[int, int, int]]]]
"""By space and number, the bytes of a packet, and what of which stream was in it."""


@dataclass(slots=True)
class _Sender:
    window: int = FIRST_BYTES
    under_way: int = 0
    sent: Sent = field(default_factory=dict)
    reached: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    acked: defaultdict[int, Coverage] = field(default_factory=lambda: defaultdict(Coverage))
    numbers: dict[str, int] = field(default_factory=dict)
    freed_ns: dict[int, int] = field(default_factory=dict)
    """Since when less of a stream is kept than can be."""
    asked_ns: int | None = None
    room_ns: int | None = None

    def take(self, packet: QuicPacket) -> None:
        """Note a packet that came from the client."""
        for frame in packet.frames or ():
            if frame.kind == ACK:
                self._acknowledge(packet.space, frame.acked, packet.at_ns)
            elif frame.kind in _ALLOWING:
                self.asked_ns = packet.at_ns
        self._look(packet.at_ns)

    def send(self, packet: QuicPacket) -> tuple[int, str] | None:
        """Note what the server sends; return since when it could have, and its room in words."""
        frames = [f for f in packet.frames or () if f.kind not in (ACK, CLOSE)]
        streams = [(f.stream, f.offset, f.offset + len(f.data)) for f in frames if f.kind == STREAM]
        new = [each for each in streams if each[2] > self.reached[each[0]]]
        since = None
        if self.asked_ns is not None and self.room_ns is not None and new:
            freed_ns = min(self.freed_ns.get(stream, 0) for stream, _, _ in new)
            since = max(self.asked_ns, self.room_ns, freed_ns)
        why = f"{self.under_way} of at least {self.window} bytes were under way"
        for stream, _, end in streams:
            self.reached[stream] = max(self.reached[stream], end)
        if packet.number is not None:
            self.numbers[packet.space] = packet.number
            if frames:
                self.sent[packet.space, packet.number] = packet.size, streams
                self.under_way += packet.size
        self.window = max(self.window, self.under_way)
        self.room_ns = None
        self._look(packet.at_ns)
        return None if since is None else (since, why)

    def misses(self, packet: QuicPacket) -> bool:
        """Whether a packet before this one of the server's was lost."""
        last = self.numbers.get(packet.space, -1)
        return packet.number is not None and packet.number != last + 1

    def _is_kept(self, stream: int) -> bool:
        """Whether as much of a stream is kept as can be."""
        return self.reached[stream] - self.acked[stream].seen > STREAM_BYTES - 2 * PACKET_BYTES

    def _acknowledge(self, space: str, ranges: Sequence[tuple[int, int]], at_ns: int) -> None:
        filled, before = self.under_way > self.window - 2 * PACKET_BYTES, self.under_way
        for key in [
            key for key in self.sent
            if key[0] == space and any(first <= key[1] <= last for first, last in ranges)
        ]:  # fmt: skip
            size, streams = self.sent.pop(key)
            self.under_way -= size
            for stream, start, end in streams:
                was_kept = self._is_kept(stream)
                self.acked[stream].add(start, end)
                if was_kept:
                    self.freed_ns[stream] = at_ns
        self.window += filled * (before - self.under_way)

    def _look(self, at_ns: int) -> None:
        if self.under_way >= FULL * self.window:
            self.room_ns = None
        elif self.room_ns is None:
            self.room_ns = at_ns


def find_silences(connection: QuicConnection, packets: Sequence[QuicPacket]) -> Iterator[Silence]:
    """Yield for how long the server could have sent its next new bytes, up to the first loss.

    ``packets`` are the connection's, in the order in which the server had them.
    """
    sender = _Sender()
    for packet in packets:
        if packet.by_client:
            sender.take(packet)
            continue
        if sender.misses(packet):
            return
        found = sender.send(packet)
        if found is not None:
            yield Silence(found[0], packet.at_ns, connection.name, found[1])


def at_server(
    connections: Iterable[QuicConnection], transits: Transits, captured: Sequence[object]
) -> Iterator[tuple[QuicConnection, list[QuicPacket]]]:
    """Yield connections and their packets, with the times and in the order of the server's end.

    ``captured`` are the packets of the client's capture.
    """
    times = {id(each.sent): each.came_ns for each in transits.get("up", ())}
    times |= {id(each.came): each.sent_ns for each in transits.get("down", ())}
    for connection in connections:
        there = [
            packet._replace(at_ns=at_ns)
            for packet in connection.packets
            if (at_ns := times.get(id(captured[packet.place - 1]))) is not None
        ]
        yield connection, sorted(there, key=lambda packet: packet.at_ns)
