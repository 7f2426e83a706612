"""Transits of the link: packets of the captures at both ends, matched, and how long they waited.

A packet that was sent at one end and came at the other took the propagation, its own time on the
line, and what it waited.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from testbed.capture.packets import ETHERNET_BYTES, Capture, Packet
from testbed.capture.recorder import RECORDED_BYTES
from testbed.model import LinkSpec, Queueing
from testbed.model.impairments import ways
from testbed.model.line import line_ms

SLICES = 64
CE = 3
"""Congestion experienced (RFC 3168 section 5)."""
_CHECKSUMS = {"TCP": 36, "UDP": 26}
"""Where a checksum is, behind Ethernet's header and that of IPv4."""
_MORE = 20
"""By how much the header of IPv6 is longer."""


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


def read_transits(client: Capture, server: Capture, addresses: Collection[bytes]) -> Transits:
    """Match the packets of both ends; ``addresses`` are the client's.

    There are none where the server's end recorded none: there were more than it can.
    """
    if not server.packets:
        return {}
    # One whose addresses were damaged on the way has neither of both, and came from nobody.
    ups, downs = (
        [[p for p in end.packets if (p.source if up else p.target) in addresses]
         for end in (client, server)] for up in (True, False)
    )  # fmt: skip
    return {"down": _match(downs[1], downs[0], up=False), "up": _match(ups[0], ups[1], up=True)}


def _match(sent: Sequence[Packet], came: Sequence[Packet], *, up: bool) -> list[Transit]:
    waiting: defaultdict[bytes, deque[Packet]] = defaultdict(deque)
    for packet in came:
        waiting[_name(packet)].append(packet)
    transits = []
    for packet in sent:
        found = waiting[_name(packet)]
        there = found.popleft() if found else None
        marked = there is not None and _is_marked(there) and not _is_marked(packet)
        at_ns = None if there is None else there.at_ns
        far_port = packet.target_port if up else packet.source_port
        transits.append(
            Transit(packet.at_ns, at_ns, packet.ip_bytes, marked, far_port, packet, there)
        )
    return transits


def _name(packet: Packet) -> bytes:
    """What a packet is known by at both ends: all of its headers but what is changed on the way."""
    frame = packet.frame[:RECORDED_BYTES]
    # What is changed on the way beside checksums: hop limit, and of the traffic class its marks.
    unchanged, begin = frame[16:22] + frame[23:24], 26
    if packet.ip == "6":
        unchanged, begin = frame[16:21], 22
    if packet.protocol not in _CHECKSUMS:
        return unchanged + frame[begin:]
    at = ETHERNET_BYTES + _CHECKSUMS[packet.protocol] + _MORE * (packet.ip == "6")
    return unchanged + frame[begin:at] + frame[at + 2 :]


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
