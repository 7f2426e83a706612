"""Waits of a load for timers: until a segment or a question was sent again.

A time-out of a connection (RFC 6298) or of a resolver stops part of a load for as long as a timer
runs, however fast network and machine are.  The kernels count the time-outs of connections; how
long these stood still, and which questions were lost, is in the client's capture.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.capture.flows import Flow, Flows, before_farewell
from testbed.capture.lookups import DNS_PORT, HEADER_BYTES, is_lookup
from testbed.capture.packets import SYN, Capture, behind
from testbed.model import Waits

TIMEOUTS = "TcpExtTCPTimeouts"
RESOLVER_NS = 1_000_000_000
"""Resolvers wait for so long at least (resolv.conf(5)): sooner, it is another look-up."""


def read_waits(capture: Capture, flows: Flows, counters: dict[str, dict[str, int]]) -> Waits:
    """Return how often timers ran out in the load of ``capture``, and the longest wait."""
    client, server = (counters[end].get(TIMEOUTS, 0) for end in ("client", "server"))
    waits_ns = lost_ns = list(_lost_questions(capture))
    if client or server:
        for flow in flows.flows:
            waits_ns = [*waits_ns, *_stops(flow, of_server=server > 0)]
    return Waits(client, server, len(lost_ns), max(waits_ns, default=0))


def _stops(flow: Flow, *, of_server: bool) -> Iterator[int]:
    """Yield for how many ns a connection had stood still before each segment sent again moved it.

    It moves by the server's next data in order and by data of the client that is new.  Of what the
    server sent again the capture lacks the first when the link dropped it.  If nothing had come
    behind it there is no hole to tell; but where the server's kernel counted a time-out
    (``of_server``), no other wait for its data is as long.  Data before the SYN-ACK moves nothing.
    """
    sent: set[int] = set()
    moved_ns = opened_ns = flow.syn.at_ns
    awaited = 0
    if flow.synack is not None:
        awaited, opened_ns = flow.synack.seq + 1, flow.synack.at_ns
    beyond: dict[int, int] = {}
    for by_client, packet in before_farewell(flow):
        if not packet.payload_bytes and not packet.flags & SYN:
            continue
        if not by_client and packet.at_ns < opened_ns:
            continue
        if by_client and packet.seq in sent:
            yield packet.at_ns - moved_ns
            continue
        if by_client:
            sent.add(packet.seq)
        elif not packet.flags & SYN:
            end = (packet.seq + packet.payload_bytes) & 0xFFFFFFFF
            if behind(packet.seq, awaited) > 0:
                beyond[packet.seq] = end
            if behind(packet.seq, awaited) > 0 or behind(end, awaited) <= 0:
                continue
            if beyond or of_server:
                yield packet.at_ns - moved_ns
            while end in beyond:
                end = beyond.pop(end)
            awaited = end
        moved_ns = packet.at_ns


def _lost_questions(capture: Capture) -> Iterator[int]:
    """Yield after how many ns each question for a name was asked again without an answer."""
    asked_ns: dict[bytes, int] = {}
    for packet in capture.packets:
        if not is_lookup(packet):
            continue
        # The name, which a zero byte ends, with type and class (RFC 1035 section 4.1.2).
        end = packet.payload.find(b"\0", HEADER_BYTES) + 5
        question = packet.payload[HEADER_BYTES:end].lower()
        since_ns = asked_ns.pop(question, None)
        if packet.target_port == DNS_PORT:
            asked_ns[question] = packet.at_ns
            if since_ns is not None and packet.at_ns - since_ns >= RESOLVER_NS:
                yield packet.at_ns - since_ns
