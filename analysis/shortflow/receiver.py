"""A Linux receiver, segment by segment: when it acknowledges, and how large its window is.

The first segments are acknowledged one by one, later ones in pairs (RFC 5681, section 4.2); but
one that is pushed is acknowledged as soon as it is read, and so is each that lets the window grow.
The window grows by two segments at a time towards what the buffer holds, and the buffer once a
round trip by what was read in it (Dynamic Right-Sizing; Linux, net/ipv4/tcp_input.c).  The program
reads at once.
"""

from __future__ import annotations

from dataclasses import dataclass

# TCP_MAX_QUICKACKS, TCP_INIT_CWND and the window of a first SYN, in multiples of 1460.
QUICK_ACKS = 16
FIRST_SPACE_SEGMENTS = 10
FIRST_WINDOW_BYTES = 64_240
# Of the lab's buffer of 131,072 bytes so much is window (the rest is what packets take beside their
# payload), less what the newest segments hold themselves.
FIRST_BUFFER_BYTES = 84_480
HELD_BYTES = 2_840


@dataclass(slots=True)
class Receiver:
    """The client's end; ``room_bytes`` is a full segment's payload, ``opened_ms`` its start."""

    room_bytes: int
    opened_ms: float
    window_bytes: int = FIRST_WINDOW_BYTES
    _limit_bytes: float = FIRST_BUFFER_BYTES - HELD_BYTES
    _quick: int = QUICK_ACKS
    _waiting: int = 0
    _received: int = 0
    _round_trip_ms: float = 0.0
    _echoed_ms: int | None = None
    _space_bytes: int = 0
    _counted_from: int = 0
    _counted_since_ms: float = 0.0

    def __post_init__(self) -> None:
        self._counted_since_ms = self.opened_ms
        self._space_bytes = FIRST_SPACE_SEGMENTS * self.room_bytes

    def receive(self, payload_bytes: int, at_ms: float, echo_ms: float, pushed: bool) -> bool:
        """Take a segment; whether it is acknowledged at once, with all before it.

        Args:
            payload_bytes: what it carries.
            at_ms: when it arrives.
            echo_ms: when the packet was sent that it answers (its time stamp echo, RFC 7323).
            pushed: whether the sender asks for it to be read (RFC 9293, section 3.9.1).
        """
        self._received += payload_bytes
        self._waiting += 1
        self._estimate(at_ms, echo_ms)
        if self.window_bytes < self._limit_bytes:
            growth = min(2 * self.room_bytes, self._limit_bytes - self.window_bytes)
            self.window_bytes += int(growth)
            self._quick |= 1
        at_once = pushed or self._quick > 0 or self._waiting >= 2
        if at_once:
            self.acknowledge()
        self._size_buffer(at_ms)
        return at_once

    def acknowledge(self) -> None:
        """Note that all that came is acknowledged."""
        self._quick = max(0, self._quick - 1)
        self._waiting = 0

    def _estimate(self, at_ms: float, echo_ms: float) -> None:
        """Update the round trip: time stamps count milliseconds, and each counts once."""
        if self._echoed_ms == int(echo_ms):
            return
        self._echoed_ms = int(echo_ms)
        sample_ms = int(at_ms) - int(echo_ms)
        if not self._round_trip_ms or sample_ms < self._round_trip_ms:
            self._round_trip_ms = sample_ms
        else:
            self._round_trip_ms += (sample_ms - self._round_trip_ms) / 8.0

    def _size_buffer(self, at_ms: float) -> None:
        """Once a round trip, make room for twice what came in it, and for what comes to more."""
        if at_ms - self._counted_since_ms < self._round_trip_ms:
            return
        copied = self._received - self._counted_from
        if copied > self._space_bytes:
            twice = 2 * copied
            more = 2 * twice * (copied - self._space_bytes) / self._space_bytes
            self._limit_bytes = max(self._limit_bytes, twice + more - HELD_BYTES)
            self._space_bytes = copied
        self._counted_from, self._counted_since_ms = self._received, at_ms
