"""Queueing before the line: the captures at both ends, held against what the link counts.

A packet that was sent at one end and came at the other took the propagation, its own time on the
line, and what it waited: for each packet of each queue, whatever the queue says of itself.  In a
FIFO it waits for exactly those before it (Lindley's recursion).
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from testbed.model import FIFO, LinkSpec, Queueing
from testbed.model.impairments import is_lossy, ways
from testbed.model.line import delay_ns, line_ms
from testbed.model.trace import RunningTrace, room_bytes, trace_of
from testbed.wire.line import SLACK_US, is_late_timer, slack_behind_us
from testbed.wire.packets import ETHERNET_BYTES, Capture, Packet
from testbed.wire.recorder import MOST, RECORDED_BYTES
from testbed.wire.visits import VisitWindow

SLICES = 64
CE = 3
"""Congestion experienced (RFC 3168 section 5)."""
_CHECKSUMS = {"TCP": 36, "UDP": 26}
"""Where a checksum is, behind Ethernet's header and that of IPv4."""
_MORE = 20
"""By how much the header of IPv6 is longer."""
_PACKET_US = 1.0
"""What clocks may add for each packet that is waited for."""


class Transit(NamedTuple):
    """A packet of the link: when it was sent, when it came (``None``: it did not), and how.

    ``far_port`` is its port at the server's end; 0: it has none.
    """

    sent_ns: int
    came_ns: int | None
    ip_bytes: int
    marked: bool
    far_port: int = 0


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
        transits.append(Transit(packet.at_ns, at_ns, packet.ip_bytes, marked, far_port))
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
            if (wait_us := _wait_us(transit, link, way)) is not None
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


def _line_us(ip_bytes: int, link: LinkSpec, way: str) -> float:
    return line_ms(link, way, ip_bytes) * 1000


def _check_opportunities(
    packets: Sequence[Transit], link: LinkSpec, way: str, running: RunningTrace
) -> Iterator[str]:
    """Yield a sentence where packets left a FIFO at other opportunities than they had to."""
    came = [transit for transit in packets if transit.came_ns is not None]
    sizes = ((each.sent_ns, each.ip_bytes + link.framing_bytes) for each in came)
    delayed_ns = delay_ns(link, way)
    otherwise = sum(
        due_ns is None or abs((each.came_ns or 0) - due_ns - delayed_ns) > SLACK_US * 1000
        for each, due_ns in zip_longest(came, running.serve(sizes, room_bytes(link)))
    )
    if otherwise:
        yield (
            f"{way}: {otherwise} of {len(came)} packets left at other opportunities than the trace "
            f"{trace_of(link, way)} had for them"
        )


def _wait_us(transit: Transit, link: LinkSpec, way: str) -> float | None:
    """Return what a packet took beyond an idle link; ``None``: it did not come."""
    if transit.came_ns is None:
        return None
    taken_us = (transit.came_ns - transit.sent_ns) / 1000
    return taken_us - ways(link)[way].delay_ms * 1000 - _line_us(transit.ip_bytes, link, way)


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


def check_queueing(
    transits: Transits,
    traffic: Mapping[str, int],
    link: LinkSpec,
    traces: Mapping[str, RunningTrace] = MappingProxyType({}),
    *,
    exact: bool,
    shared: bool = False,
    visits: Sequence[VisitWindow] = (),
) -> Iterator[str]:
    """Yield a sentence where packets crossed the link otherwise than it says, or than it can.

    Args:
        transits: of ``read_transits``.
        traffic: what the link counted of the load.
        link: what was asked.
        traces: those of the link, by direction.
        exact: whether times are, as in virtual time where nothing but losses is drawn.
        shared: whether others use the link, whose packets it counts as well.
        visits: those of the load; of what was sent between them no time is held against the link.
    """
    passed = sum(traffic.get(f"{way}.delivered", 0) for way in ("down", "up"))
    if not transits and passed <= MOST:
        yield f"the server's end recorded none of {passed} packets"
    for way, packets in transits.items():
        gone = sum(transit.came_ns is None for transit in packets)
        lost = sum(traffic.get(f"{way}.{how}", 0) for how in ("dropped", "lost", "too_long"))
        corrupted = traffic.get(f"{way}.corrupted", 0)
        told = lost + corrupted
        # What was too long on the other way may be told of on this one, past its queue.
        of_router = traffic.get("up.too_long" if way == "down" else "down.too_long", 0)
        # Not all damage can be seen in headers, and a copy may come of what was lost.
        least = 0 if shared else lost - of_router - traffic.get(f"{way}.duplicated", 0)
        if not least <= gone <= told + max(traffic.get("waiting", 0), 0):
            yield f"{way}: {gone} packets did not come through, the link counts {told}"
        # A queue may count a packet twice, by two rules, or one that it then drops.
        marked = sum(transit.marked for transit in packets)
        counted = traffic.get(f"{way}.marked", 0)
        if marked > counted + corrupted:
            yield f"{way}: {marked} packets got a congestion mark, the queue counts {counted}"
        if exact:
            alone = not (shared or of_router)
            held = [
                transit
                for transit in packets
                if not visits or any(visit.is_under_way(transit.sent_ns) for visit in visits)
            ]
            yield from _check_times(held, link, way, traces.get(way), alone=alone)


def _check_times(
    packets: Sequence[Transit],
    link: LinkSpec,
    way: str,
    running: RunningTrace | None,
    *,
    alone: bool,
) -> Iterator[str]:
    waits = [wait for transit in packets if (wait := _wait_us(transit, link, way)) is not None]
    early = [wait for wait in waits if wait < -SLACK_US]
    if early:
        yield f"{way}: {len(early)} packets came up to {-min(early):.1f} us sooner than they can"
    hop = way == "down" and link.hop_down  # whose queue is another
    if not alone or link.queues[way] != FIFO or is_lossy(link) or hop:
        return
    if running is not None:
        yield from _check_opportunities(packets, link, way, running)
        return
    idle_us, before = 0.0, 0
    otherwise: list[float] = []
    slack_us = slack_behind_us(link) if way == "up" else SLACK_US
    for transit in packets:
        wait_us = _wait_us(transit, link, way)
        if wait_us is None:
            continue
        sent_us = transit.sent_ns / 1000
        before = before + 1 if idle_us > sent_us else 0
        theory_us = max(idle_us - sent_us, 0.0)
        if abs(wait_us - theory_us) > slack_us + before * _PACKET_US:
            otherwise.append(wait_us - theory_us)
        idle_us = sent_us + theory_us + _line_us(transit.ip_bytes, link, way)
    if otherwise and not is_late_timer(otherwise):
        yield f"{way}: {len(otherwise)} packets waited otherwise than in a FIFO"
