"""The server's first flight: sent before an acknowledgement could have come back (RFC 6928).

A segment that reaches the client less than a round trip after the client's first acknowledgement
of data left is part of it.  The initial window counts segments, so a flight has no more of them
than the knob says.  It has fewer for many good reasons; one is none: all that the client sent was
there, more of the answer followed without a word of the client, its window had room, and the link
lay idle until an acknowledgement came back.

On a link with loss, what lies before a segment that arrived was sent before it, and is counted with
it.  If the first segment is lost, the client acknowledges nothing new; that it tells of others lets
the server send already (RFC 3042).  A segment that comes again ends the flight, and what came
before a SYN-ACK that was lost is none: the client had to throw it away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from testbed.capture.flows import Flow, Flows, payloads
from testbed.capture.packets import ACK, SYN, Packet, behind
from testbed.capture.routers import count_first_flights
from testbed.model import LinkSpec
from testbed.model.impairments import fastest
from testbed.model.line import serialisation_ms
from testbed.model.trace import traced
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

IDLE_SHARE = 0.25
"""So much of a round trip the link must have lain idle; less may be a late process."""
LEAST_IDLE_MS = 1.0


@dataclass(frozen=True, slots=True)
class Flight:
    """A server's first flight: segments, and whether it ended for no reason but the window.

    ``lost`` of the segments did not arrive.
    """

    segments: int
    stopped: bool
    lost: int = 0


@check("initial window", "link", "tcp", "flows", "transits", source="RFC 6928")
def check_first_flights(seen: Evidence) -> Iterator[str]:
    """No server's first flight has more segments than its initial window, or fewer without reason.

    Of segments that came in another order nobody can tell which an acknowledgement let go.  Where
    the link dropped some, a flight may have been longer than the capture shows.
    """
    if seen.link.reorder_pct:
        return
    flights, window = first_flights(seen), seen.tcp.initcwnd_segments
    larger = [f for f in flights if f.segments > window]
    if larger:
        largest = max(larger, key=lambda f: f.segments)
        lost = f" ({largest.lost} of them lost)" if largest.lost else ""
        yield (
            f"the first flights of {len(larger)} of {len(flights)} connections have up to "
            f"{largest.segments} segments{lost}, asked was an initial window of {window}"
        )
    whole = seen.all_came_down and seen.steady
    smaller = [f.segments for f in flights if whole and f.stopped and f.segments < window]
    if smaller:
        yield (
            f"the first flights of {len(smaller)} of {len(flights)} connections stopped after "
            f"{min(smaller)} segments, asked was an initial window of {window}"
        )


def first_flights(seen: Evidence) -> list[Flight]:
    """Return the first flights of all servers that sent data.

    Of one with segments that were too long for the path, the server's own capture has it.
    """
    known, link = count_first_flights(seen.at_server, seen.link), fastest(seen.link)
    flights = []
    for flow in seen.flows.flows:
        segments = known.get(flow.ends)
        flight = measure(flow, seen.flows, link) if segments is None else Flight(segments, False)
        flights += [] if flight is None else [flight]
    return flights


def measure(flow: Flow, flows: Flows, link: LinkSpec) -> Flight | None:
    """Return the first flight of one connection; ``None``: the server sent no data."""
    data = list(payloads(flow, by_client=False))
    if not data:
        return None
    lacking, first = data[0]
    # Behind a hole a client acknowledges nothing new, and lets servers send (RFC 3042).
    answered_ns = next(
        (s.at_ns for by_client, s in flow.packets
         if by_client and s.at_ns >= first.at_ns and s.flags & ACK
         and (lacking > 0 or behind(s.ack, first.seq) > 0)), None,
    )  # fmt: skip
    largest = max(segment.payload_bytes for _, segment in data)
    count, lost, reached, size = 0, 0, 0, 0
    following: Packet | None = None
    # From then on a segment may be a probe for an acknowledgement that is lost, or held up: for it
    # a sender waits two round trips at least (RFC 8985, section 7.2) from when the request came.
    asked = next((packet for _, packet in payloads(flow, by_client=True)), None)
    probed_ns = inf if asked is None else asked.at_ns + 3 * link.rtt_ms * 1e6
    for offset, segment in data:
        missing = -(-(offset - reached) // largest)
        if segment.at_ns >= probed_ns and missing > count == 0:
            return Flight(missing, False, missing)  # all of it was lost, and this is a probe
        if offset < reached or (segment.at_ns >= probed_ns and traced(link)):
            return Flight(count, False, lost)  # sent again: what follows has other reasons
        if answered_ns is not None and segment.at_ns >= answered_ns + link.rtt_ms * 1e6:
            following = segment if offset == reached else None
            break
        lost, count, size = lost + missing, count + missing + 1, size + segment.payload_bytes
        reached = offset + segment.payload_bytes
    if following is None or reached != size:
        return Flight(count, False, lost)
    return Flight(count, _is_free(flow, flows, first, following, size, link))


def _is_free(
    flow: Flow, flows: Flows, first: Packet, following: Packet, size: int, link: LinkSpec
) -> bool:
    """Whether nothing but the window kept ``following`` back, after a flight of ``size`` bytes."""
    if traced(link):
        return False  # what waits for an opportunity leaves the link idle, too
    before = [(c, s) for c, s in flow.packets if s.at_ns < following.at_ns]
    if sum(1 for _, s in before if s.flags & SYN) != 2:
        return False  # sent again: then the window is another
    request_bytes = max(behind(s.seq, first.ack) + s.payload_bytes for c, s in before if c)
    if request_bytes > 0:
        return False  # the server may have answered to what came later
    # What the client tells with its first acknowledgement of data is too late for this flight.
    room = min(
        s.window << (0 if s.flags & SYN else flow.window_shift)
        for c, s in before
        if c and s.at_ns <= first.at_ns
    )
    if size + following.payload_bytes > room:
        return False
    index = bisect_left(flows.arrivals, (following.at_ns, 0))
    busy_ms = serialisation_ms(following.ip_bytes, link.down_kbit, link.framing_bytes)
    idle_ms = (following.at_ns - flows.arrivals[index - 1][0]) / 1e6 - busy_ms
    return idle_ms >= max(LEAST_IDLE_MS, IDLE_SHARE * link.rtt_ms)
