"""Transits of the link: packets of the captures at both ends, matched, and how long they waited.

A packet that was sent at one end and came at the other took the propagation, its own time on the
line, and what it waited.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.capture.packets import Capture, Packet
from testbed.capture.recorder import RECORDED_BYTES
from testbed.model import LinkSpec, Queueing
from testbed.model.impairments import ways
from testbed.model.line import line_ms

SLICES = 64
CE = 3
"""Congestion experienced (RFC 3168 section 5)."""


class Transit(NamedTuple):
    """A packet of the link: when it was sent, when it came (``None``: it did not), and how.

    ``far_port`` is its port at the server's end; 0: it has none.  ``sent`` and ``came`` are the
    packet in the captures of both ends.
    """

    sent_ns: int
    came_ns: int | None
    ip_bytes: int
    marked: bool
    far_port: int
    sent: Packet
    came: Packet | None


Transits = dict[str, list[Transit]]
"""By direction, in the order in which packets were sent."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """Packets of a direction, in the captures of both of its ends.

    ``transits`` are all that were sent, in order, ``pairs`` those that came, as sent and as they
    came.  ``copies`` came once more than they were sent, and ``strange`` are what nobody sent, or
    nobody like that; what is of neither direction is of that which comes to the capture.
    """

    transits: list[Transit]
    pairs: list[tuple[Packet, Packet]]
    copies: list[Packet]
    strange: list[Packet]


Crossings = dict[str, Crossed]
"""By direction."""


def read_crossings(
    near: Capture, far: Capture, addresses: Collection[bytes], kept: int = RECORDED_BYTES
) -> Crossings:
    """Match the packets of both ends; ``addresses`` are those of the near end.

    Of each frame ``kept`` bytes are in both.  There are none where the far end recorded none: there
    were more than it can.
    """
    if not far.packets:
        return {}
    # One whose addresses were damaged on the way has neither of both, and came from nobody.
    ends = {"near": _sort(near, addresses), "far": _sort(far, addresses)}
    return {
        "down": _match(ends["far"][1], ends["near"][1], ends["near"][2], kept, up=False),
        "up": _match(ends["near"][0], ends["far"][0], ends["far"][2], kept, up=True),
    }


def read_transits(client: Capture, server: Capture, addresses: Collection[bytes]) -> Transits:
    """Return how the packets of both ends crossed; ``addresses`` are the client's."""
    return transits_of(read_crossings(client, server, addresses))


def transits_of(crossings: Crossings) -> Transits:
    """Return how packets crossed, by direction."""
    return {way: crossing.transits for way, crossing in crossings.items()}


def join_transits(some: Transits, others: Transits) -> Transits:
    """Return all transits of a line that is shared, in the order in which packets were sent.

    Of two that hosts sent in the same instant the one that came first was before the other: no
    capture has both.
    """
    return {
        way: list(heapq.merge(packets, others.get(way, ()), key=_sent_and_came))
        for way, packets in some.items()
    }


def _sent_and_came(transit: Transit) -> tuple[int, float]:
    return transit.sent_ns, math.inf if transit.came_ns is None else transit.came_ns


def _sort(
    capture: Capture, addresses: Collection[bytes]
) -> tuple[list[Packet], list[Packet], list[Packet]]:
    """Return the packets that go up, that go down, and that do neither."""
    sides: tuple[list[Packet], list[Packet], list[Packet]] = ([], [], [])
    for packet in capture.packets:
        up, down = packet.source in addresses, packet.target in addresses
        sides[0 if up else 1 if down else 2].append(packet)
    return sides


def _match(
    sent: Sequence[Packet], came: Sequence[Packet], others: Sequence[Packet], kept: int, *, up: bool
) -> Crossed:
    waiting: defaultdict[bytes, deque[Packet]] = defaultdict(deque)
    for packet in came:
        waiting[_name(packet, kept)].append(packet)
    transits, pairs, names = [], [], set()
    for packet in sent:
        name = _name(packet, kept)
        names.add(name)
        found = waiting.get(name)
        there = found.popleft() if found else None
        marked = there is not None and _is_marked(there) and not _is_marked(packet)
        at_ns = None if there is None else there.at_ns
        far_port = packet.target_port if up else packet.source_port
        transits.append(
            Transit(packet.at_ns, at_ns, packet.ip_bytes, marked, far_port, packet, there)
        )
        if there is not None:
            pairs.append((packet, there))
    left = [(name in names, packet) for name, found in waiting.items() for packet in found]
    return Crossed(
        *(transits, pairs, [packet for known, packet in left if known]),
        [*(packet for known, packet in left if not known), *others],
    )


def _name(packet: Packet, kept: int) -> bytes:
    """What a packet is known by at both ends: all of it but what routers change (RFC 1812, 8200).

    That is the hop limit, of the traffic class its marks, and in IPv4 the checksum of the header.
    """
    frame = packet.frame[:kept]
    if packet.ip == "6":
        return frame[12:14] + bytes((frame[14] & 0xF0, frame[15] & 0xF)) + frame[16:21] + frame[22:]
    return frame[12:15] + frame[16:22] + frame[23:24] + frame[26:]


def _is_marked(packet: Packet) -> bool:
    return packet.traffic_class & CE == CE


def describe_queueing(transits: Transits, link: LinkSpec) -> dict[str, Queueing]:
    """Return how packets of each direction waited; nothing of one in which none came through."""
    every = [transit for way in transits.values() for transit in way]
    begin_ns = min((transit.sent_ns for transit in every), default=0)
    end_ns = max((transit.sent_ns for transit in every), default=0)
    slice_ns = (end_ns - begin_ns) // SLICES + 1
    found = {}
    for way, packets in transits.items():
        waits_us = [
            (transit.sent_ns, wait_us)
            for transit in packets
            if (wait_us := waited_us(transit, link, way)) is not None
        ]
        if not waits_us:
            continue
        peaks = [0.0] * SLICES
        for sent_ns, wait_us in waits_us:
            place = (sent_ns - begin_ns) // slice_ns
            peaks[place] = max(peaks[place], wait_us)
        ordered = sorted(wait_us for _, wait_us in waits_us)
        hits = sorted(_backlogs(packets, ways(link)[way].delay_ms))
        found[way] = Queueing(
            packets=len(ordered),
            dropped=len(packets) - len(ordered),
            marked=sum(transit.marked for transit in packets),
            median_ms=ordered[len(ordered) // 2] / 1000,
            p95_ms=ordered[len(ordered) * 95 // 100] / 1000,
            peak_ms=ordered[-1] / 1000,
            hit_bytes=hits[len(hits) // 2] if hits else None,
            slice_ms=slice_ns / 1e6,
            peaks_us=tuple(round(max(peak, 0.0)) for peak in peaks),
        )
    return found


def line_us(ip_bytes: int, link: LinkSpec, way: str) -> float:
    """Return how long a packet occupies the line of its direction."""
    return line_ms(link, way, ip_bytes) * 1000


def waited_us(transit: Transit, link: LinkSpec, way: str) -> float | None:
    """Return what a packet took beyond an idle link; ``None``: it did not come."""
    if transit.came_ns is None:
        return None
    taken_us = (transit.came_ns - transit.sent_ns) / 1000
    return taken_us - ways(link)[way].delay_ms * 1000 - line_us(transit.ip_bytes, link, way)


def _backlogs(packets: Sequence[Transit], delay_ms: float) -> Iterator[int]:
    """Yield the bytes before each packet that was dropped or marked, when it came to the queue."""
    inside: list[tuple[float, int]] = []
    waiting_bytes = 0
    for transit in packets:
        while inside and inside[0][0] <= transit.sent_ns:
            waiting_bytes -= heapq.heappop(inside)[1]
        if transit.marked or transit.came_ns is None:
            yield waiting_bytes
        if transit.came_ns is not None:
            left_ns = transit.came_ns - delay_ms * 1e6
            heapq.heappush(inside, (left_ns, transit.ip_bytes))
            waiting_bytes += transit.ip_bytes
