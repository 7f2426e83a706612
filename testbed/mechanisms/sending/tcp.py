"""TCP servers in the capture at their end: for how long each could have sent what it sent next.

A server has bytes to send once what asked for them came, and room for them while fewer segments are
under way than its congestion window holds (RFC 5681) and the client's window takes one more.  That
congestion window is not in a capture, but its least size is: it starts as the knob says, grows by
each segment that is acknowledged in slow start, and is no smaller than what was under way; a loss
may take it down to two segments.  So who sends nothing while less than that is under way waits for
something else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from testbed.capture.packets import (
    ACK,
    ECE,
    FIN,
    MSS,
    SACK,
    SYN,
    TIMESTAMPS,
    WINDOW_SCALE,
    Packet,
    behind,
    find_option,
)

NEAR_NS = 250_000
"""In virtual time what a server does at once takes it less than this: 40 us at most in 560 loads,
81 us where many requests came at once."""
FULL = 2 / 3
"""A sender whose window has this share of its segments under way may wait for more room, to send it
as one batch (tcp_tso_should_defer in net/ipv4/tcp_output.c, tcp_tso_win_divisor)."""
HYSTART_SEGMENTS, HYSTART_NS, TRAIN_NS = 16, 4_000_000, 2_000_000
"""From this window on CUBIC may end slow start early: when round trips take so much longer, or when
ACKs less than this apart have come for half a round trip (net/ipv4/tcp_cubic.c, RFC 9406)."""
IDLE_NS = 200_000_000
"""A window that was not used for the least retransmission timeout, for want of requests, may have
shrunk to the first one (RFC 5681 section 4.1, RFC 7661)."""
LOST_SEGMENTS = 2
"""The least window after losses, of which one may follow another (RFC 5681 section 3.1)."""
FAREWELL_BYTES = 128
"""TLS's last words, and HTTP/2's, before a server ends a connection that was idle."""
_OPTION_BYTES = 12
"""Timestamps, and what pads them."""


class Silence(NamedTuple):
    """From when to when a server sent nothing, though it had something to send and room for it.

    ``why`` are its words on the room that there was.
    """

    since_ns: int
    until_ns: int
    connection: str
    why: str

    @property
    def ms(self) -> float:
        """How long it was, in ms."""
        return (self.until_ns - self.since_ns) / 1e6


@dataclass(slots=True)
class _Sender:
    """The server's side of a connection: what is under way, and the least window it has."""

    name: str
    window: float
    syn: int
    first_window: float = 0.0
    next_seq: int = 0
    opened: bool = False
    acked: int = 0
    under_way: int = 0
    segments: deque[tuple[int, int, int]] = field(default_factory=deque)
    """The end, the count and the sending time of what is not acknowledged."""
    edge: int | None = None
    """Up to where the client takes bytes."""
    shift: int = 0
    mss: int = 536
    asked_ns: int | None = None
    room_ns: int | None = None
    """Since when there has been room."""
    filled_ns: int = 0
    """When there was no room last."""
    sent_ns: int = 0
    most: int = 0
    """The most segments under way since none was."""
    least_rtt_ns: int | None = None
    ack_ns: int = 0
    train_ns: int = 0
    slow_start: bool = True
    threshold: int | None = None
    recovering: int | None = None
    """Up to where bytes must be acknowledged until a loss is over."""
    answered: bool = False
    """Whether some of its data was acknowledged."""

    def __post_init__(self) -> None:
        self.first_window = self.window

    def take(self, packet: Packet) -> None:
        """Note a packet that came from the client."""
        if packet.flags & SYN:
            scale = find_option(packet, WINDOW_SCALE)
            self.shift, self.mss = scale[0] if scale else 0, _segment_bytes(packet)
        elif packet.flags & ACK and self.opened:
            self._acknowledge(packet)
        if packet.payload_bytes:
            self.asked_ns = packet.at_ns
        self._look(packet.at_ns)

    def open(self, synack: Packet) -> None:
        """Note a SYN-ACK; after one that was sent again the window is of one segment."""
        self.window = 1 if self.opened else self.window
        self.opened, self.next_seq, self.acked = True, (synack.seq + 1) & 0xFFFFFFFF, synack.seq
        self.mss = min(self.mss, _segment_bytes(synack))
        self._look(synack.at_ns)

    def send(self, packet: Packet) -> Silence | None:
        """Note data that the server sends; return since when it could have sent it, if it could."""
        end = (packet.seq + packet.payload_bytes) & 0xFFFFFFFF
        if behind(end, self.next_seq) <= 0:
            self._lose()
            self._look(packet.at_ns)
            return None
        silence = None
        if self.room_ns is not None and self.asked_ns is not None:
            since = max(self.room_ns, self.asked_ns)
            under = f"{self.under_way} of at least {self.window:.0f} segments were under way"
            silence = Silence(since, packet.at_ns, self.name, under)
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
        while self.segments and behind(self.segments[0][0], packet.ack) <= 0:
            _, segments, sent_ns = self.segments.popleft()
            count, self.under_way, self.answered = count + segments, self.under_way - segments, True
        if self.recovering is not None and behind(packet.ack, self.recovering) >= 0:
            self.recovering = None
            if find_option(packet, SACK):
                self._lose()  # what was sent since is lacking, too
        if count and self.recovering is None:
            self._grow(count, packet.at_ns, packet.at_ns - sent_ns)

    def _grow(self, count: int, at_ns: int, rtt_ns: int) -> None:
        """Let the window grow by ``count`` segments, if it surely does."""
        if self.threshold is not None:
            self.window = max(self.window, min(self.threshold, self.window + count))
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
            self.threshold, self.window = LOST_SEGMENTS, 1
            self.recovering = self.next_seq

    def _look(self, at_ns: int) -> None:
        """Note whether there is room."""
        most = self.window * FULL if self.answered else self.window
        room = self.under_way < max(1.0, most)
        if self.recovering is not None:
            room = self.under_way == 0
        if self.edge is not None:
            room = room and behind(self.edge, self.next_seq) >= self.mss
        if not room:
            self.room_ns, self.filled_ns = None, at_ns
        elif self.room_ns is None:
            self.room_ns = at_ns


def _segment_bytes(packet: Packet) -> int:
    """Return the most data of a segment that the sender of a SYN takes."""
    option, timestamps = find_option(packet, MSS), find_option(packet, TIMESTAMPS)
    size = int.from_bytes(option) if option else 536
    return size - (0 if timestamps is None else _OPTION_BYTES)


def find_silences(
    packets: Iterable[Packet], clients: Collection[bytes], segments: int
) -> Iterator[Silence]:
    """Yield for how long each server could have sent its next new data, where that is known.

    ``packets`` are those of the capture at the servers' end, ``segments`` is the first window.
    """
    senders: dict[tuple[int, bytes, int], _Sender] = {}
    words: dict[tuple[int, bytes, int], list[Silence]] = {}
    for packet in packets:
        up = packet.source in clients
        if packet.protocol != "TCP" or not (up or packet.target in clients):
            continue
        key = (packet.source_port, packet.target, packet.target_port)
        if not up:
            key = (packet.target_port, packet.source, packet.source_port)
        sender = senders.get(key)
        if up and packet.opens and (sender is None or sender.syn != packet.seq):
            name = f"{packet.sender} to {packet.receiver}"
            sender = senders[key] = _Sender(name, segments, packet.seq)
        if sender is None:
            continue
        if up:
            sender.take(packet)
            continue
        last = words.pop(key, [])
        near = bool(last) and packet.at_ns - last[0].until_ns <= NEAR_NS
        if not (near and packet.payload_bytes <= FAREWELL_BYTES):
            yield from last
            last = []
        if packet.flags & SYN:
            sender.open(packet)
            continue
        found = None
        if packet.payload_bytes and sender.opened:
            found = sender.send(packet)
        if packet.flags & FIN and packet.payload_bytes <= FAREWELL_BYTES:
            continue  # these were its last words
        if found is not None and packet.payload_bytes > FAREWELL_BYTES:
            yield found
            continue
        words[key] = [*last, *([] if found is None else [found])]
    for last in words.values():
        yield from last
