"""Queue before the line: packets cross it as the link counts them, and wait as in a FIFO.

A packet that was sent at one end and came at the other took the propagation, its own time on the
line, and what it waited: for each packet of each queue, whatever the queue says of itself.  In a
FIFO it waits for exactly those before it (Lindley's recursion).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from testbed.capture.recorder import MOST
from testbed.capture.transits import Transit, line_us, waited_us
from testbed.model import FIFO, LinkSpec
from testbed.model.impairments import is_lossy
from testbed.model.line import delay_ns
from testbed.model.trace import RunningTrace, room_bytes, trace_of
from testbed.proof.check import check
from testbed.proof.evidence import Evidence
from testbed.proof.line import SHARED_SLACK_US, SLACK_US, is_late_timer, slack_behind_us

_PACKET_US = 1.0
"""What clocks may add for each packet that is waited for."""


@check("queue", "capture", "at_server", "transits", "link")
def check_queueing(seen: Evidence) -> Iterator[str]:
    """Packets crossed the link as it counts them, none sooner than it can, in a FIFO no later.

    Times are held against the link in virtual time where nothing but losses is drawn.  Packets of
    neighbours cross it as well.  Between two visits no time is held against it.
    """
    traffic = seen.counted
    visits = seen.visits if seen.has("visits") and len(seen.visits) > 1 else ()
    passed = sum(traffic.get(f"{way}.delivered", 0) for way in ("down", "up"))
    if not seen.transits and passed <= MOST:
        yield f"the server's end recorded none of {passed} packets"
    watched = seen.virtual_time and seen.has("logs")
    waiting = told_waiting = traffic.get("waiting", 0)
    narrow = any(traffic.get(f"{way}.too_long") for way in ("down", "up"))
    for way, packets in seen.all_transits.items():
        gone = sum(transit.came_ns is None for transit in packets)
        lost = sum(traffic.get(f"{way}.{how}", 0) for how in ("dropped", "lost", "too_long"))
        corrupted = traffic.get(f"{way}.corrupted", 0)
        told = lost + corrupted
        # What was too long on the other way may be told of on this one, past its queue.
        of_router = traffic.get("up.too_long" if way == "down" else "down.too_long", 0)
        # Not all damage can be seen in headers, and a copy may come of what was lost.
        copies = traffic.get(f"{way}.duplicated", 0)
        least = lost - of_router - copies
        if not least <= gone <= told + max(told_waiting, 0):
            yield f"{way}: {gone} packets did not come through, the link counts {told}"
        # A queue may count a packet twice, by two rules, or one that it then drops.
        marked = sum(transit.marked for transit in packets)
        counted = traffic.get(f"{way}.marked", 0)
        if not marked - corrupted <= counted <= 2 * marked + gone + corrupted:
            yield f"{way}: {marked} packets got a congestion mark, the queue counts {counted}"
        delivered = traffic.get(f"{way}.delivered", 0)
        inside = len(packets) + copies - lost - delivered
        waiting -= inside
        if watched and not -of_router <= inside <= max(told_waiting, 0):
            yield f"{way}: the link delivered {delivered} of {len(packets)} packets, {lost} gone"
        if seen.virtual_time and seen.steady:
            held = [
                transit
                for transit in packets
                if not visits or any(visit.is_under_way(transit.sent_ns) for visit in visits)
            ]
            slack_us = SHARED_SLACK_US if seen.line_shared else SLACK_US
            if way == "up":
                slack_us = max(slack_us, slack_behind_us(seen.link))
            running = seen.traces.get(way)
            yield from _check_times(held, seen.link, way, running, slack_us, alone=not of_router)
    if watched and seen.transits and waiting and not narrow:
        yield f"{told_waiting} packets were still in the link, by the captures {waiting} fewer"


def _check_times(
    packets: Sequence[Transit],
    link: LinkSpec,
    way: str,
    running: RunningTrace | None,
    slack_us: float,
    *,
    alone: bool,
) -> Iterator[str]:
    waits = [wait for transit in packets if (wait := waited_us(transit, link, way)) is not None]
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
    for transit in packets:
        wait_us = waited_us(transit, link, way)
        if wait_us is None:
            continue
        sent_us = transit.sent_ns / 1000
        before = before + 1 if idle_us > sent_us else 0
        theory_us = max(idle_us - sent_us, 0.0)
        if abs(wait_us - theory_us) > slack_us + before * _PACKET_US:
            otherwise.append(wait_us - theory_us)
        idle_us = sent_us + theory_us + line_us(transit.ip_bytes, link, way)
    if otherwise and not is_late_timer(otherwise):
        yield f"{way}: {len(otherwise)} packets waited otherwise than in a FIFO"


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
