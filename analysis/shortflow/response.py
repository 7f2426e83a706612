"""A response over TCP, segment by segment: a Linux sender and a Linux receiver without loss.

Slow start grows by what is acknowledged (RFC 5681 with appropriate byte counting, RFC 3465), from
the initial window (RFC 6928).  cubic leaves it when HyStart finds the pipe full: when the least
round trip of a round has grown, or when acknowledgements in close order span half the least round
trip (Ha and Rhee, 2008; Linux, net/ipv4/tcp_cubic.c).

The first segments are acknowledged one by one, later ones in pairs (RFC 5681, section 4.2); but
one that is pushed is acknowledged as soon as it is read, and so is each that lets the window grow.
The window grows by two segments at a time towards what the buffer holds, and the buffer once a
round trip by what was read in it (Dynamic Right-Sizing; Linux, net/ipv4/tcp_input.c).  The program
reads at once.  In one direction nothing overtakes, so that segments and acknowledgements are
computed in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from analysis.shortflow.link import FlowDirection

# net/ipv4/tcp_cubic.c: hystart_low_window, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN and _MAX,
# hystart_ack_delta_us; what hystart_ack_delay() comes to below 2 Gbit/s.
LOW_WINDOW_SEGMENTS = 16
LEAST_SAMPLES = 8
LEAST_GROWTH_MS, MOST_GROWTH_MS = 4.0, 16.0
CLOSE_ORDER_MS = 2.0
TRAIN_ALLOWANCE_MS = 1.0
# Before the first loss cubic adds at least one segment for so many acknowledged ones.
SEGMENTS_PER_INCREASE = 20
GROWTH_SHARE = 8
# TCP_MAX_QUICKACKS, TCP_INIT_CWND and the window of a first SYN, in multiples of 1460.
QUICK_ACKS = 16
FIRST_SPACE_SEGMENTS = 10
FIRST_WINDOW_BYTES = 64_240
# Of the lab's buffer of 131,072 bytes so much is window (the rest is what packets take beside their
# payload), less what the newest segments hold themselves.
FIRST_BUFFER_BYTES = 84_480
HELD_BYTES = 2_840
# IP and TCP header with time stamps (RFC 7323).
ACK_BYTES = 20 + 20 + 12
# Linux, TCP_DELACK_MIN.
DELAYED_ACK_MS = 40.0
# What the sender hands down at a time, the last of it pushed: the least that Linux takes, and as
# long as two segments take more than half a millisecond all that it takes (tcp_tso_autosize).
BURST_SEGMENTS = 2


@dataclass(slots=True)
class Window:
    """A sender's congestion window in segments; ``hystart`` is cubic's, and reno has none."""

    segments: int
    hystart: bool
    rounds: int = 0
    left_slow_start_ms: float | None = None
    _round_end: int = 0
    _round_start_ms: float = 0.0
    _last_close_ms: float = 0.0
    _samples: int = 0
    _round_least_ms: float = float("inf")
    _least_ms: float = float("inf")
    _towards_increase: int = 0

    def acknowledge(
        self, at_ms: float, round_trip_ms: float, newly: int, acked: int, sent: int
    ) -> None:
        """Grow by one acknowledgement.

        Args:
            at_ms: when it arrives at the sender.
            round_trip_ms: since the last segment that it acknowledges was sent.
            newly: how many segments it acknowledges.
            acked: how many are acknowledged with them.
            sent: how many have been sent.
        """
        self._least_ms = min(self._least_ms, round_trip_ms)
        if acked > self._round_end:
            self._begin_round(at_ms, sent)
        if self.left_slow_start_ms is None:
            if self.hystart and self.segments >= LOW_WINDOW_SEGMENTS:
                self._look_for_full_pipe(at_ms, round_trip_ms)
            if self.left_slow_start_ms is None:
                self.segments += newly
                return
        self._towards_increase += newly
        grown, self._towards_increase = divmod(self._towards_increase, SEGMENTS_PER_INCREASE)
        self.segments += grown

    def _begin_round(self, at_ms: float, sent: int) -> None:
        self.rounds += 1
        self._round_end = sent
        self._round_start_ms = self._last_close_ms = at_ms
        self._samples = 0
        self._round_least_ms = float("inf")

    def _look_for_full_pipe(self, at_ms: float, round_trip_ms: float) -> None:
        if at_ms - self._last_close_ms <= CLOSE_ORDER_MS:
            self._last_close_ms = at_ms
            threshold_ms = (self._least_ms + TRAIN_ALLOWANCE_MS) / 2.0
            if at_ms - self._round_start_ms > threshold_ms:
                self.left_slow_start_ms = at_ms
        self._round_least_ms = min(self._round_least_ms, round_trip_ms)
        if self._samples < LEAST_SAMPLES:
            self._samples += 1
            return
        growth_ms = min(max(self._least_ms / GROWTH_SHARE, LEAST_GROWTH_MS), MOST_GROWTH_MS)
        if self._round_least_ms > self._least_ms + growth_ms:
            self.left_slow_start_ms = at_ms


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
        """Take a segment; return whether it is acknowledged at once, with all before it.

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
        """Acknowledge everything received."""
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
        """Once a round trip, grow the buffer: twice what arrived in it, and more if that grows."""
        if at_ms - self._counted_since_ms < self._round_trip_ms:
            return
        copied = self._received - self._counted_from
        if copied > self._space_bytes:
            twice = 2 * copied
            growth = 2 * twice * (copied - self._space_bytes) / self._space_bytes
            self._limit_bytes = max(self._limit_bytes, twice + growth - HELD_BYTES)
            self._space_bytes = copied
        self._counted_from, self._counted_since_ms = self._received, at_ms


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement: when it leaves and arrives, and how many segments it acknowledges.

    ``edge_bytes`` is the end of the receive window, in payload bytes of the whole response.
    """

    sent_ms: float
    arrives_ms: float
    segments: int
    edge_bytes: int


@dataclass(slots=True)
class Transfer:
    """One response: ``sizes`` are the IP bytes of its segments."""

    sizes: Sequence[int]
    window: Window
    receiver: Receiver
    down: FlowDirection
    up: FlowDirection
    _sent_ms: list[float] = field(default_factory=list)
    _sent_bytes: int = 0
    _arrived_ms: float = 0.0

    def run(self, request: Ack) -> float:
        """Return when the last segment arrives, in ms; ``request`` lets the first ones leave."""
        acks: deque[Ack] = deque()
        last = request
        while True:
            acks.extend(self._send(last))
            if len(self._sent_ms) == len(self.sizes):
                return self._arrived_ms
            if not acks:  # the window is closed, and a lone segment waits for one that cannot come
                self.receiver.acknowledge()
                acks.append(self._acknowledge(self._arrived_ms + DELAYED_ACK_MS))
            before, last = last, acks.popleft()
            self.window.acknowledge(
                at_ms=last.arrives_ms,
                round_trip_ms=last.arrives_ms - self._sent_ms[last.segments - 1],
                newly=last.segments - before.segments, acked=last.segments, sent=len(self._sent_ms),
            )  # fmt: skip

    def _send(self, last: Ack) -> Iterator[Ack]:
        """Send what ``last`` allows, burst by burst; yield the immediate acknowledgements."""
        while count := self._next_burst(last):
            for remaining in reversed(range(count)):
                size = self.sizes[len(self._sent_ms)]
                self._arrived_ms = self.down.carry(size, last.arrives_ms)
                self._sent_ms.append(last.arrives_ms)
                self._sent_bytes += size - ACK_BYTES
                pushed = count > 1 and remaining == 0
                if self.receiver.receive(size - ACK_BYTES, self._arrived_ms, last.sent_ms, pushed):
                    yield self._acknowledge(self._arrived_ms)

    def _next_burst(self, last: Ack) -> int:
        """Return how many segments leave together: at most half a window (tcp_cwnd_test)."""
        sent = len(self._sent_ms)
        open_segments = min(self.window.segments - (sent - last.segments), len(self.sizes) - sent)
        count = max(0, min(BURST_SEGMENTS, max(self.window.segments // 2, 1), open_segments))
        room = last.edge_bytes - self._sent_bytes
        while sum(self.sizes[sent : sent + count]) - count * ACK_BYTES > room:
            count -= 1
        return count

    def _acknowledge(self, at_ms: float) -> Ack:
        """Acknowledge all that was sent, which has all arrived."""
        edge_bytes = self._sent_bytes + self.receiver.window_bytes
        return Ack(at_ms, self.up.carry(ACK_BYTES, at_ms), len(self._sent_ms), edge_bytes)
