"""Initial congestion window of QUIC in a capture: at no time was more under way than it allows.

What is acknowledged makes room and lets the window grow by as much, at most (RFC 9002 section
7.3.1).  So a server has sent no more than its first window and twice what was acknowledged to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from testbed.capture.quic import QuicConnection
from testbed.capture.quic_frames import ACK, CRYPTO, STREAM
from testbed.model import LinkSpec
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

PACKET_BYTES = 1200
PROBES = 2
"""Packets that may be sent when a timer expires, however full the window is (section 6.2.4)."""


@check("initial window of QUIC", "load", "condition", "quic", source="RFC 9002 section 7.3.1")
def check_quic_windows(seen: Evidence) -> Iterator[str]:
    """No server had more under way than its first window and acknowledgements allow.

    A window that was never filled cannot be told from a larger one.
    """
    packets, link = seen.condition.quic.initcwnd_packets, seen.link
    if packets is None or not _is_steady(link):
        return
    for connection in seen.quic:
        first = least_window(connection, round(link.rtt_ms * 1e6))
        if first > (packets + PROBES) * PACKET_BYTES:
            yield (
                f"initcwnd_packets = {packets}, but the server of {connection.name} had sent "
                f"{first} bytes more than acknowledgements allow"
            )


def _is_steady(link: LinkSpec) -> bool:
    """Whether no packet takes less than the delay of the link."""
    return not any((link.changes, link.delay_jitter_ms, link.reorder_pct))


def least_window(connection: QuicConnection, rtt_ns: int) -> int:
    """Return the smallest first window, in bytes, with which the server can have sent all it did.

    An acknowledgement that left less than ``rtt_ns`` before a packet came was no reason for it.
    """
    seen: set[tuple[str, int]] = set()
    pending: dict[str, dict[int, int]] = {}
    told: list[tuple[int, int]] = []
    came: list[tuple[int, int]] = []
    for packet in connection.packets:
        own = pending.setdefault(packet.space, {})
        frames = packet.frames or ()
        if packet.by_client:
            acked = [frame.acked for frame in frames if frame.kind == ACK]
            told += [(packet.at_ns, _take(own, ranges)) for ranges in acked]
        # Numbers are not used twice (RFC 9000 section 12.3), but a packet may come twice.
        elif packet.number is not None and (packet.space, packet.number) not in seen:
            seen.add((packet.space, packet.number))
            own[packet.number] = packet.size
            if any(frame.kind in (STREAM, CRYPTO) for frame in frames):
                came.append((packet.at_ns, packet.size))
    times = [at_ns for at_ns, _ in told]
    sums = [0, *accumulate(taken for _, taken in told)]
    arrived = accumulate(size for _, size in came)
    windows = (
        total - 2 * sums[bisect_right(times, at_ns - rtt_ns)]
        for (at_ns, _), total in zip(came, arrived, strict=True)
    )
    return max(windows, default=0)


def _take(pending: dict[int, int], ranges: Sequence[tuple[int, int]]) -> int:
    """Take packets in ``ranges`` out of the numbered ones, and return their bytes."""
    acked = [n for n in pending if any(first <= n <= last for first, last in ranges)]
    return sum(pending.pop(number) for number in acked)
