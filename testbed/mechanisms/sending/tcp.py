"""TCP servers in the capture at their end: for how long each could have sent what it sent next.

A server has room (``testbed.mechanisms.sending.sender``) while fewer segments are under way than
its congestion window holds (RFC 5681) and the client's window takes one more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.capture.connections import TIMESTAMP_BYTES
from testbed.capture.flows import Flows, speaks_tls
from testbed.capture.packets import (
    ACK,
    ECE,
    FIN,
    SACK,
    SYN,
    TIMESTAMPS,
    Packet,
    behind,
    find_option,
    mss_of,
)
from testbed.mechanisms.sending.sender import FULL, LOST_PACKETS, NEAR_NS, Sender, Silence

HYSTART_SEGMENTS, HYSTART_NS, TRAIN_NS = 16, 4_000_000, 2_000_000
"""From this window on CUBIC may end slow start early: when round trips take so much longer, or when
ACKs less than this apart have come for half a round trip (net/ipv4/tcp_cubic.c, RFC 9406)."""
IDLE_NS = 200_000_000
"""A window that was not used for the least retransmission timeout, for want of requests, may have
shrunk to the first one (RFC 5681 section 4.1, RFC 7661)."""
FAREWELL_BYTES = 128
"""TLS's last words, and HTTP/2's, before a server ends a connection that was idle."""


@dataclass(slots=True, kw_only=True)
class _Sender(Sender):
    mss: int
    shift: int
    """By how much the client scales its window."""
    next_seq: int
    acked: int
    first_window: float
    corks: bool
    """Whether it holds a short segment back until the one before is acknowledged (RFC 896), as
    nginx on Linux does where it gathered a response (tcp_nopush): there it sets no TCP_NODELAY."""
    segments: deque[tuple[int, int, int]] = field(default_factory=deque)
    """The end, the count and the sending time of what is not acknowledged."""
    edge: int | None = None
    """Up to where the client takes bytes."""
    filled_ns: int = 0
    """When there was no room last."""
    sent_ns: int = 0
    most: int = 0
    """The most segments under way since none was."""
    short_end: int | None = None
    """The end of the last short segment, until that is acknowledged."""
    short_ns: int = 0
    least_rtt_ns: int | None = None
    ack_ns: int = 0
    train_ns: int = 0
    slow_start: bool = True
    recovering: int | None = None
    """Up to where bytes must be acknowledged until a loss is over."""
    answered: bool = False
    """Whether some of its data was acknowledged."""

    def take(self, packet: Packet) -> None:
        """Note a packet that came from the client."""
        if packet.flags & ACK:
            self._acknowledge(packet)
        if packet.payload_bytes:
            self.asked_ns = packet.at_ns
        self._look(packet.at_ns)

    def send(self, packet: Packet) -> Silence | None:
        """Note data that the server sends; return since when it could have sent it, if it could."""
        end = (packet.seq + packet.payload_bytes) & 0xFFFFFFFF
        if behind(end, self.next_seq) <= 0:
            self._lose()
            self._look(packet.at_ns)
            return None
        since_ns = self.asked_ns
        if packet.payload_bytes < self.mss:
            if self.corks and since_ns is not None:
                since_ns = max(since_ns, self.short_ns)
            self.short_end = end
        silence = self.silence(since_ns, packet.at_ns)
        fresh = self.asked_ns is not None and self.asked_ns > self.sent_ns
        if fresh and packet.at_ns - self.filled_ns > IDLE_NS:
            self.window = min(self.window, max(self.first_window, self.under_way))
        count = -(-packet.payload_bytes // self.mss)
        self.most = max(self.most if self.under_way else 0, self.under_way + count)
        self.segments.append((end, count, packet.at_ns))
        self.next_seq, self.under_way, self.sent_ns = end, self.under_way + count, packet.at_ns
        if self.recovering is None:
            self.window = max(self.window, self.under_way)
        self.room_ns = None
        self._look(packet.at_ns)
        return silence

    def _acknowledge(self, packet: Packet) -> None:
        count, edge = 0, (packet.ack + (packet.window << self.shift)) & 0xFFFFFFFF
        if self.edge is None or behind(edge, self.edge) > 0:
            self.edge = edge
        if packet.flags & ECE or find_option(packet, SACK):
            self._lose()
        if behind(packet.ack, self.acked) <= 0:
            return
        self.acked, sent_ns = packet.ack, 0
        if self.short_end is not None and behind(self.short_end, packet.ack) <= 0:
            self.short_end, self.short_ns = None, packet.at_ns
        while self.segments and behind(self.segments[0][0], packet.ack) <= 0:
            _, segments, sent_ns = self.segments.popleft()
            count, self.under_way, self.answered = count + segments, self.under_way - segments, True
        # What a tail loss probe made good, its server knows by the next ACK (RFC 8985, 7.4).
        if self.recovering is not None and behind(packet.ack, self.recovering) > 0:
            self.recovering = None
            if find_option(packet, SACK):
                self._lose()  # what was sent since is lacking, too
        if count and self.recovering is None:
            self._grow(count, packet.at_ns, packet.at_ns - sent_ns)

    def _grow(self, count: int, at_ns: int, rtt_ns: int) -> None:
        """Let the window grow by ``count`` segments, if it surely does."""
        if self.shrunk:
            self.window = max(self.window, min(LOST_PACKETS, self.window + count))
            return
        self.least_rtt_ns = min(rtt_ns, self.least_rtt_ns or rtt_ns)
        if at_ns - self.ack_ns > TRAIN_NS:
            self.train_ns = at_ns
        self.ack_ns = at_ns
        if self.window >= HYSTART_SEGMENTS and (
            rtt_ns > self.least_rtt_ns + HYSTART_NS or at_ns - self.train_ns > self.least_rtt_ns / 2
        ):
            self.slow_start = False
        if self.slow_start and 2 * self.most > self.window:
            self.window += count

    def _lose(self) -> None:
        """Note that the server may know of a loss; until it is over the window is unknown."""
        if self.recovering is None:
            self.shrunk, self.window, self.recovering = True, 1, self.next_seq

    def _look(self, at_ns: int) -> None:
        """Note whether there is room."""
        most = self.window * FULL if self.answered else self.window
        room = self.under_way < max(1.0, most)
        if self.recovering is not None:
            room = self.under_way == 0
        if self.edge is not None:
            room = room and behind(self.edge, self.next_seq) >= self.mss
        if not room:
            self.filled_ns = at_ns
        self.look(at_ns, room=room)


def _segment_bytes(packet: Packet) -> int:
    """Return the most data of a segment that the sender of a SYN takes."""
    timestamps = find_option(packet, TIMESTAMPS)
    return (mss_of(packet) or 536) - (0 if timestamps is None else TIMESTAMP_BYTES)


def find_silences(flows: Flows, segments: int) -> Iterator[Silence]:
    """Yield for how long each server could have sent its next new data, where that is known.

    ``flows`` are those of the capture at the servers' end, ``segments`` is the first window.
    """
    for flow in flows.flows:
        if flow.synack is None:
            continue
        sender = _Sender(
            f"{flow.syn.sender} to {flow.syn.receiver}",
            segments,
            "segments",
            mss=min(_segment_bytes(flow.syn), _segment_bytes(flow.synack)),
            shift=flow.window_shift,
            next_seq=(flow.synack.seq + 1) & 0xFFFFFFFF,
            acked=flow.synack.seq,
            first_window=segments,
            corks=not speaks_tls(flow),
        )
        last: list[Silence] = []
        for by_client, packet in flow.packets:
            if by_client:
                sender.take(packet)
                continue
            small = packet.payload_bytes <= FAREWELL_BYTES
            if not (small and last and packet.at_ns - last[0].until_ns <= NEAR_NS):
                yield from last
                last = []
            if packet.flags & SYN and packet is not flow.synack:
                sender.window = 1  # it was sent again
            found = sender.send(packet) if packet.payload_bytes else None
            if found is not None and not small:
                yield found
            elif small and packet.flags & FIN:
                last = []  # these were its last words
            elif found is not None:
                last.append(found)
        yield from last
