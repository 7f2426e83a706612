"""A response on its way: each segment leaves when the window lets it, and opens it when it came.

In one direction nothing overtakes, so that segments and acknowledgements are computed in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from analysis.shortflow.bottleneck import Direction
from analysis.shortflow.receiver import Receiver
from analysis.shortflow.window import Window

# IP and TCP header with time stamps (RFC 7323).
ACK_BYTES = 20 + 20 + 12
# Linux, TCP_DELACK_MIN.
DELAYED_ACK_MS = 40.0
# What the sender hands down at a time, the last of it pushed: the least that Linux takes, and as
# long as two segments take more than half a millisecond all that it takes (tcp_tso_autosize).
BURST_SEGMENTS = 2


@dataclass(frozen=True, slots=True)
class Ack:
    """What opens the window: when it leaves and arrives, segments that came, and how far to go.

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
    down: Direction
    up: Direction
    _sent_ms: list[float] = field(default_factory=list)
    _sent_bytes: int = 0
    _arrived_ms: float = 0.0

    def run(self, request: Ack) -> float:
        """When the last segment has arrived, in ms; ``request`` lets the first ones leave."""
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
                newly=last.segments - before.segments,
                acked=last.segments,
                sent=len(self._sent_ms),
            )

    def _send(self, last: Ack) -> Iterator[Ack]:
        """Send what ``last`` lets go, burst by burst; what the receiver acknowledges at once."""
        while count := self._next_burst(last):
            for left in reversed(range(count)):
                size = self.sizes[len(self._sent_ms)]
                self._arrived_ms = self.down.carry(size, last.arrives_ms)
                self._sent_ms.append(last.arrives_ms)
                self._sent_bytes += size - ACK_BYTES
                pushed = count > 1 and left == 0
                if self.receiver.receive(size - ACK_BYTES, self._arrived_ms, last.sent_ms, pushed):
                    yield self._acknowledge(self._arrived_ms)

    def _next_burst(self, last: Ack) -> int:
        """How many segments leave together: at most half a window (tcp_cwnd_test)."""
        sent = len(self._sent_ms)
        open_segments = min(self.window.segments - (sent - last.segments), len(self.sizes) - sent)
        count = max(0, min(BURST_SEGMENTS, max(self.window.segments // 2, 1), open_segments))
        while count and self._sent_bytes + self._payload(sent, count) > last.edge_bytes:
            count -= 1
        return count

    def _payload(self, start: int, count: int) -> int:
        return sum(self.sizes[start : start + count]) - count * ACK_BYTES

    def _acknowledge(self, at_ms: float) -> Ack:
        """All that was sent, which is all that came."""
        edge_bytes = self._sent_bytes + self.receiver.window_bytes
        return Ack(at_ms, self.up.carry(ACK_BYTES, at_ms), len(self._sent_ms), edge_bytes)
