"""The load time by the capture's own clock, from the client's first packet to the last new byte.

What a client says of its load is held against what crossed the link meanwhile: its load time, its
first byte, and the end of each request.  In virtual time computing costs next to nothing, so that a
client may add no more than ``SLACKS``, which are measured (docs/accuracy.md); in real time it adds
what its computing takes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from testbed.archive.failures import ABORTED
from testbed.capture.flows import Flow, before_farewell, first_packet_ns, payloads
from testbed.capture.packets import FIN, RST, behind
from testbed.proof.check import check, of_each
from testbed.proof.evidence import Evidence
from testbed.proof.line import SLACK_US
from testbed.proof.visits import VisitWindow


class Slack(NamedTuple):
    """By how much a client's time may be before and behind the capture's, in ms."""

    early_ms: float
    late_ms: float


SLACKS = MappingProxyType({"graph": Slack(0.1, 0.1), "wget2": Slack(1.1, 3.0)})
"""In virtual time: wget2 cuts its times to whole ms, and its process has to end."""
BROWSER = Slack(1.0, 5.0)
"""The same of every other client: a browser ends requests and loads behind scripts and frames."""
BROWSER_BY_QUIC = Slack(1.0, 10.0)
"""A datagram for each request, and one more for each that has to wait: 250 of them take 4 ms."""
NO_ENDS = ("wget2", "1.99.1")
"""A client whose log tells when it went on behind a response, not when the response ended."""
REAL_LATE_MS = 1_000.0
"""What a client may add in real time, beside what keeps a browser's main thread busy."""
REAL_EARLY_SHARE = 1e-3
"""In real time one of two clocks may be slewed (adjtimex(2))."""
SHOWN = 3


@check("load time", "load", "visits", "capture", "flows", "quic", "served")
@of_each("visits")
def check_load_time(seen: Evidence, visit: VisitWindow) -> Iterator[str]:
    """Each load ended, and each of its requests, when bytes of the capture came.

    A spare connection, on which only TLS spoke, is not of the load.  The last byte of all responses
    came when the client says that its load ended, or, of a browser, its last request.  Tickets are
    no bytes of a response.
    """
    load, began = visit.load, visit.zero_ns(seen.capture, seen.clients)
    carried = {(connection.client, connection.server) for connection in seen.served}
    handshakes = seen.handshakes if seen.has("handshakes") else ()
    tickets = {(each.client, each.server): each.tickets for each in handshakes}

    def in_ms(times_ns: Iterable[int]) -> list[float]:
        return [(at - began) / 1e6 for at in times_ns if began is not None and visit.holds(at)]

    over_tcp = (new_bytes(flow, tickets.get(flow.ends, ())) for flow in seen.flows.flows
                if flow.ends in carried)  # fmt: skip
    over_quic = (each.answered_ns() for each in seen.quic if (each.client, each.server) in carried)
    arrivals_ms = sorted(in_ms(chain(*over_tcp, *over_quic)))
    if not arrivals_ms:
        yield "the capture has no byte of a response"
        return
    last_ms = arrivals_ms[-1]
    slack = SLACKS.get(load.client, BROWSER_BY_QUIC if seen.quic else BROWSER)
    if not seen.virtual_time:
        late_ms = REAL_LATE_MS + 1e3 * load.browser.get("task_s", 0.0)
        slack = Slack(slack.early_ms + REAL_EARLY_SHARE * last_ms, late_ms)
    slack = slack._replace(late_ms=slack.late_ms + held_ms(seen))
    ends_ms = [request.end_ms for request in load.requests if request.status and request.end_ms]
    # A browser's load may end before what its scripts ask for.
    end_ms = max((load.plt_ms, *ends_ms)) if load.browser else load.plt_ms
    # What a rule of the web refused came, too, and what the page gave up may still come.
    failed = [each for each in load.requests if each.failure]
    latest_ms = max([end_ms, *(inf if e.failure == ABORTED else e.end_ms for e in failed)])
    # What came of a response may have waited for what its headers refer to, which was lost.
    headers_ms = sorted(in_ms(at for each in seen.quic for at in each.told_ns()))
    waited = end_ms > last_ms and is_near(end_ms, headers_ms, slack)
    # A load may wait for a request that fails, by an answer of its own: of a resolver, or an RST.
    came_ms = sorted(in_ms(each.at_ns for each in seen.capture.packets
                           if each.target in seen.clients))  # fmt: skip
    waited |= any(is_near(end_ms, [e.end_ms], slack) and is_near(e.end_ms, came_ms, slack)
                  for e in failed)  # fmt: skip
    timely = last_ms - slack.early_ms <= latest_ms and end_ms - last_ms <= slack.late_ms
    if not waited and not timely:
        yield (
            f"the load ended after {end_ms:.3f} ms by its client, the capture's last byte came "
            f"after {last_ms:.3f} ms"
        )
    told_ms = [] if load.ttfb_ms is None else [load.ttfb_ms]
    if (load.client, load.client_version) != NO_ENDS:
        told_ms += ends_ms
    apart = [
        each
        for each in told_ms
        if not is_near(each, arrivals_ms, slack) and not is_near(each, headers_ms, slack)
    ]
    if apart:
        yield (
            f"{len(apart)} of {len(told_ms)} times that the client tells are not those of bytes in "
            f"the capture: {', '.join(f'{each:.3f} ms' for each in apart[:SHOWN])}"
        )


@check("requests counted", "load", "replay")
def check_counts(seen: Evidence) -> Iterator[str]:
    """Client and servers count the same requests; a client of one's own need not name its own."""
    load, replay = seen.load, seen.replay
    requests = [request for visit in load.visits for request in visit.requests]
    claimed = sum(1 for request in requests if request.status)
    answered = replay.exact + len(replay.inexact)
    if claimed > answered + len(replay.missed):
        yield (
            f"the client names {claimed} answered requests, the server answered "
            f"{answered + len(replay.missed)}"
        )
    if requests and answered > len(requests):
        yield f"the server answered {answered} requests, the client names {len(requests)}"


def held_ms(seen: Evidence) -> float:
    """Return for how long the client's first packet may have waited for the last hop."""
    hop = seen.traces.get("hop_up")
    first = first_packet_ns(seen.capture, seen.clients)
    if hop is None or first is None:
        return 0.0
    return (first - hop.before_ns(first - round(SLACK_US * 1000))) / 1e6


def new_bytes(flow: Flow, besides: Sequence[tuple[int, int]] = ()) -> Iterator[int]:
    """Yield when the server's bytes came that were not there before, until either end ended.

    Those in the places ``besides``, from the first to before the second, are left out.

    Those are new, too, that the client did not keep when they came: what overtakes later data has
    an older timestamp than that, and is thrown away (PAWS, RFC 7323 section 5.2).
    """
    offsets = {id(packet): offset for offset, packet in payloads(flow, by_client=False)}
    seen: dict[int, int] = {}
    told, acked = 0, 0
    for by_client, packet in before_farewell(flow):
        if by_client:
            if packet.flags & (FIN | RST):
                return
            told, acked = told + 1, packet.ack
        elif (offset := offsets.get(id(packet))) is not None:
            end = offset + packet.payload_bytes
            if any(first <= offset and end <= last for first, last in besides):
                continue
            then = seen.get(offset)
            if then is None or (then < told and behind(acked, packet.seq) <= 0):
                seen[offset] = told
                yield packet.at_ns


def is_near(told_ms: float, arrivals_ms: Sequence[float], slack: Slack) -> bool:
    """Whether something came, at one of these times, about when a client says so."""
    index = bisect_right(arrivals_ms, told_ms + slack.early_ms)
    return index > 0 and told_ms - arrivals_ms[index - 1] <= slack.late_ms
