"""Conduct of neighbours' TCP in captures: it opens, sends and reads as a kernel does unasked.

What nobody asked for shows in packets: another MSS, buffer or class in the openings; a rate that is
kept by a timer, for new data leaves when an acknowledgement came unless the congestion control
paces it; a receiver whose window does not grow although it holds the sender up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.capture.connections import (
    MOST_RECEIVE_BYTES,
    TIMESTAMP_BYTES,
    WINDOW_SHIFT,
    opening_window,
)
from testbed.capture.ecn import NEEDS_ECN
from testbed.capture.packets import (
    ACK,
    FAST_OPEN,
    MSS,
    RST,
    SACK_PERMITTED,
    SYN,
    TIMESTAMPS,
    WINDOW_SCALE,
    Packet,
    behind,
    read_options,
    scale_of,
)
from testbed.model import LinkSpec
from testbed.model.traffic import Neighbour
from testbed.proof.neighbours.flow import SeenFlow

PACED = frozenset({"bbr"})
"""Congestion controls that send by a timer (SK_PACING_NEEDED, net/ipv4/tcp_bbr.c)."""
CLOCK_NS = 100_000
"""How long after an acknowledgement what it lets out may leave: 64 us beside a browser."""
PACED_MOST_KBIT = 100_000
"""On a faster line acknowledgements are hardly further apart than that."""
PROBES, PROBED_SHARE, PACED_SHARE, PACED_LEAST = 3, 0.05, 0.1, 100
"""New segments that timers let out (RFC 8985), and those that a pacing sender's timer has to."""
STILL_NS, HELD_UP = 2_000_000_000, 10
"""For how long a window that holds the sender up may stay as it is, and for how many segments."""
WIDE_BYTES = MOST_RECEIVE_BYTES // 4
"""A window that is not narrow."""
_HEADERS_BYTES = 40


def check_class(neighbour: Neighbour, seen: SeenFlow) -> Iterator[str]:
    """Yield a sentence if packets were sent with another class than the default's (RFC 2474)."""
    allowed = {0, 1, 2, 3} if neighbour.algorithm == NEEDS_ECN else {0}
    others = [p for p in (*seen.out, *seen.left) if p.traffic_class not in allowed]
    if others:
        yield (
            f"{len(others)} packets were sent with the traffic class "
            f"{others[0].traffic_class:#04x}, asked was none"
        )


def check_conduct(neighbour: Neighbour, way: str, seen: SeenFlow, link: LinkSpec) -> Iterator[str]:
    """Yield a sentence for each thing that a connection did otherwise than an untouched one."""
    for end, sent, stamped in (("its end", seen.out, 0), ("its other end", seen.left, 1)):
        for packet in sent:
            if packet.flags & SYN:
                yield from _check_opening(packet, end, link, stamped)
    data, acks = (seen.out, seen.back) if way == "up" else (seen.left, seen.arrived)
    clock = _read_clock(data, acks)
    paced = neighbour.algorithm in PACED
    if not paced and clock.late > max(PROBES, PROBED_SHARE * clock.segments):
        yield (
            f"{clock.late} of {clock.segments} segments left when no acknowledgement came, and "
            f"{neighbour.algorithm} has no pace of its own"
        )
    slow = max(link.down_kbit, link.up_kbit) <= PACED_MOST_KBIT
    if paced and slow and clock.late < PACED_SHARE * clock.segments >= PACED_SHARE * PACED_LEAST:
        yield (
            f"{clock.late} of {clock.segments} segments left when no acknowledgement came, and "
            f"{neighbour.algorithm} sends at a pace of its own"
        )
    if clock.held > HELD_UP:
        yield f"{clock.held} segments filled a receive window that did not grow"


def _check_opening(packet: Packet, end: str, link: LinkSpec, stamped: int) -> Iterator[str]:
    """Yield a sentence if an end opened otherwise than pinned sysctls make it (tcp_output.c)."""
    options = dict(read_options(packet.options))
    mss = int.from_bytes(options.get(MSS, b""))
    due = {mtu - _HEADERS_BYTES for mtu in (link.mtu_bytes, link.line_mtu_bytes)}
    window = opening_window(mss - TIMESTAMP_BYTES * stamped)
    odd = {SACK_PERMITTED, TIMESTAMPS} - options.keys() or FAST_OPEN in options
    if mss not in due or odd or options.get(WINDOW_SCALE) != bytes((WINDOW_SHIFT,)):
        yield f"{end} opened with other TCP options than its kernel's defaults"
    elif packet.window != window:
        yield f"{end} opened with a window of {packet.window}, its default is {window}"


@dataclass(slots=True)
class _Clock:
    """New segments after the first acknowledged one: all, those that left late, those held up."""

    segments: int = 0
    late: int = 0
    held: int = 0


def _read_clock(data: Sequence[Packet], acks: Sequence[Packet]) -> _Clock:
    """Return by what the new data of one side left, in the capture at its own end."""
    clock = _Clock()
    syn = next((packet for packet in data if packet.flags & SYN), None)
    if syn is None:
        return clock
    first = syn.seq + 1 & 0xFFFFFFFF
    high = edge = shift = size = widest = 0
    came_ns = still_ns = 0
    running = False
    # What came before what left then.
    both = [*((p.at_ns, False, p) for p in acks), *((p.at_ns, True, p) for p in data)]
    for at_ns, by_sender, packet in sorted(both, key=lambda each: each[:2]):
        if not by_sender:
            came_ns = at_ns
            if packet.flags & SYN:
                shift = scale_of(packet) or 0
            if packet.flags & ACK and not packet.flags & RST:
                room = packet.window << (0 if packet.flags & SYN else shift)
                reached = behind(packet.ack, first)
                running = running or reached > 0
                edge = max(edge, reached + room)
                if room > widest:
                    widest, still_ns = room, at_ns
            continue
        end = behind(packet.seq, first) + packet.payload_bytes
        if not packet.payload_bytes or end <= high:
            continue
        high, size = end, max(size, packet.payload_bytes)
        if running:
            clock.segments += 1
            clock.late += at_ns - came_ns > CLOCK_NS
            narrow = edge - end < size and widest < WIDE_BYTES
            clock.held += narrow and at_ns - still_ns > STILL_NS
    return clock
