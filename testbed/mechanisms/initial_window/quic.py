"""Initial congestion window of QUIC in a capture: at no time was more under way than it allows.

Nor did a server wait for an acknowledgement with less under way, in the midst of a response, before
anything was lost: a window does not shrink without a reason (RFC 9002 section 7.3).

What is acknowledged makes room and lets the window grow by as much, at most (RFC 9002 section
7.3.1).  So a server has sent no more than its first window and twice what was acknowledged to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter

from testbed.capture.quic import HANDSHAKES, ONE_RTT, QuicConnection
from testbed.capture.quic_frames import ACK, CRYPTO, STREAM
from testbed.mechanisms.initial_window.proof import IDLE_SHARE, LEAST_IDLE_MS
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

PACKET_BYTES = 1200
PROBES = 2
"""Packets that may be sent when a timer expires, however full the window is (section 6.2.4)."""
MOST_BYTES = 60_000
"""A server need not have more of a response ready: nginx has 64 KB of a stream."""
PROMPT_NS = 1_000_000
"""How long a server may take from an acknowledgement to what that lets go."""


@check("initial window of QUIC", "load", "condition", "quic", source="RFC 9002 section 7.3.1")
def check_quic_windows(seen: Evidence) -> Iterator[str]:
    """No server had more under way than its first window and acknowledgements allow, or less.

    A window that was never filled cannot be told from a larger one.
    """
    packets, link = seen.condition.quic.initcwnd_packets, seen.link
    if packets is None or link.changes or link.delay_jitter_ms or link.reorder_pct:
        return  # a packet may take less than the delay of the link
    for connection in seen.quic:
        first = least_window(connection, round(link.rtt_ms * 1e6))
        if first > (packets + PROBES) * PACKET_BYTES:
            yield (
                f"initcwnd_packets = {packets}, but the server of {connection.name} had sent "
                f"{first} bytes more than acknowledgements allow"
            )
    # Of packets that took another's place nobody can tell what an acknowledgement let go.
    if not (seen.all_came_down and seen.steady and seen.has("transits")):
        return
    left = {each.came_ns: each.sent_ns for each in seen.transits.get("down", ())}
    told = {each.sent_ns: each.came_ns for each in seen.transits.get("up", ())}
    for connection in seen.quic:
        idle_ns = round(max(LEAST_IDLE_MS, IDLE_SHARE * link.rtt_ms) * 1e6)
        size = first_stop(connection, left, told, idle_ns)
        if size is not None and size < min((packets - 1) * PACKET_BYTES, MOST_BYTES):
            yield (
                f"initcwnd_packets = {packets}, but the server of {connection.name} waited for an "
                f"acknowledgement with {size} bytes under way"
            )


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


def first_stop(
    connection: QuicConnection,
    left: Mapping[int | None, int],
    told: Mapping[int, int | None],
    idle_ns: int,
) -> int | None:
    """Return the bytes under way when a server first waited in a response until it was told more.

    ``left`` is when what came then had been sent, and ``told`` when what was sent then had come, at
    the server, in ns.  It waited for ``idle_ns`` or longer; ``None``: it never did.  Until its
    client's handshake came, something else held it back (RFC 9000 section 8.1), and with that what
    it had sent before is no longer under way (RFC 9002 section 6.4).
    """
    events = [
        (told.get(each.at_ns) if each.by_client else left.get(each.at_ns), not each.by_client, each)
        for each in connection.packets
    ]
    timed = sorted(((at, by, p) for at, by, p in events if at is not None), key=itemgetter(0, 1))
    pending: dict[int, int] = {}
    begun: set[int] = set()
    valid = False
    last_ns = size = acked_ns = 0
    for at_ns, by_server, packet in timed:
        frames = packet.frames or ()
        if packet.space != ONE_RTT:
            valid = valid or (packet.kind == HANDSHAKES and not by_server)
        elif not by_server:
            taken = sum(_take(pending, frame.acked) for frame in frames if frame.kind == ACK)
            acked_ns = at_ns if taken else acked_ns
        else:
            data = {frame.stream for frame in packet.requests}
            waited = at_ns - last_ns >= idle_ns and at_ns - acked_ns <= PROMPT_NS
            if waited and valid and data & begun:
                return size
            ended = {frame.stream for frame in packet.requests if frame.fin}
            begun = (begun | data) - ended
            if packet.number is not None and any(frame.kind != ACK for frame in frames):
                pending[packet.number] = packet.size
                last_ns, size = at_ns, sum(pending.values())
    return None


def _take(pending: dict[int, int], ranges: Sequence[tuple[int, int]]) -> int:
    """Take packets in ``ranges`` out of the numbered ones, and return their bytes."""
    acked = [n for n in pending if any(first <= n <= last for first, last in ranges)]
    return sum(pending.pop(number) for number in acked)
