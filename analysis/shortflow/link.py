"""The emulated link as arithmetic: when a packet arrives, and whether it fits into the buffer.

A packet waits in a drop-tail buffer that counts bytes, occupies the line for its serialisation and
then takes half the round trip (dummynet's pipe; here a token bucket of one packet before a line,
tc-tbf(8) and tc-netem(8)).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from testbed.model import LinkSpec
from testbed.model.line import burst_bytes, serialisation_ms


@dataclass(slots=True)
class FlowDirection:
    """One direction of a link; packets enter in the order of their times.

    ``overflowed`` is whether any packet found the buffer full; it is carried all the same, so
    that the rest of the arithmetic goes on, but nothing after it is what a kernel would do.
    """

    rate_kbit: float
    delay_ms: float
    buffer_bytes: int
    framing_bytes: int
    bucket_bytes: float
    overflowed: bool = False
    peak_bytes: int = 0
    busy_ms: float = 0.0
    _free_ms: float = 0.0
    _tokens: float = 0.0
    _filled_ms: float = 0.0
    _waiting: deque[tuple[float, int]] = field(default_factory=deque)

    def carry(self, ip_bytes: int, at_ms: float) -> float:
        """Return when a packet that enters at ``at_ms`` has arrived at the other end, in ms."""
        leaves_ms = self._leave_buffer(ip_bytes + self.framing_bytes, at_ms)
        duration_ms = serialisation_ms(ip_bytes, self.rate_kbit, self.framing_bytes)
        self._free_ms = max(self._free_ms, leaves_ms) + duration_ms
        self.busy_ms += duration_ms
        return self._free_ms + self.delay_ms

    def _leave_buffer(self, size: int, at_ms: float) -> float:
        """Return when the packet leaves the buffer: the bucket must hold tokens for all of it."""
        while self._waiting and self._waiting[0][0] <= at_ms:
            self._waiting.popleft()
        queued_bytes = sum(waiting for _, waiting in self._waiting)
        self.overflowed |= queued_bytes + size > self.buffer_bytes
        # It waits for the packets before it.
        from_ms = max(at_ms, self._waiting[-1][0] if self._waiting else at_ms)
        bytes_per_ms = self.rate_kbit / 8.0
        gained = self._tokens + (from_ms - self._filled_ms) * bytes_per_ms
        tokens = min(self.bucket_bytes, gained)
        leaves_ms = from_ms + max(0.0, size - tokens) / bytes_per_ms
        self._tokens = max(0.0, tokens - size)
        self._filled_ms = leaves_ms
        if leaves_ms > at_ms:
            self._waiting.append((leaves_ms, size))
            self.peak_bytes = max(self.peak_bytes, queued_bytes + size)
        return leaves_ms


def directions(link: LinkSpec) -> tuple[FlowDirection, FlowDirection]:
    """Return the downlink and the uplink of ``link``, empty."""
    bucket = burst_bytes(link)
    delay_and_buffer = link.rtt_ms / 2.0, link.buffer_bytes, link.framing_bytes, bucket
    return (
        FlowDirection(link.down_kbit, *delay_and_buffer, _tokens=bucket),
        FlowDirection(link.up_kbit, *delay_and_buffer, _tokens=bucket),
    )
