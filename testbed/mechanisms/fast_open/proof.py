"""Fast Open, verified by packet capture: every connection did as its arm says (RFC 7413).

From the client's capture: each connection's SYN, its payload, its Fast Open option, and how much
of it the SYN-ACK acknowledged.  From both ends' counters: what the kernels say of the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.capture.connections import Connection
from testbed.mechanisms.preconnect.proof import count_due
from testbed.proof.check import check
from testbed.proof.conduct import server_of_flow
from testbed.proof.evidence import Evidence

REFUSALS = (
    "TcpExtTCPFastOpenListenOverflow",
    "TcpExtTCPFastOpenPassiveFail",
    "TcpExtSyncookiesSent",
)
"""What a server's kernel counts when it takes a SYN and not its data: no room for it, a cookie that
is not its own, or an answer by a SYN cookie."""


@check("connections", "own_client", "connections", "quic")
def check_connected(seen: Evidence) -> Iterator[str]:
    """The client opened a connection, over TCP or QUIC."""
    if not seen.connections and not seen.quic:
        yield "the capture shows no connection"


@check("fast open", "own_client", "connections", "counters", "tcp", source="RFC 7413")
def check_arm(seen: Evidence) -> Iterator[str]:
    """With Fast Open every SYN carries the request and the server takes it, without it none does.

    ``cookies = "cold"``: but for connections opened before the origin's new cookie arrived, whose
    first none takes.  An
    overloaded server may leave a SYN without an answer, and refuse the data of as many as its
    kernel counted.  Of two IPs the one that is broken answers nothing.  As many SYNs may have gone
    again, without their request, or have got no answer, as the link lost packets.
    """
    connections = seen.connections
    if seen.overloaded or seen.link.ip == "dual-broken":
        connections = tuple(c for c in connections if c.answered)
    if not seen.tcp.tfo:
        loaded = [c for c in connections if c.payload or c.fastopen_option]
        if loaded:
            yield f"control arm: {len(loaded)} of {len(connections)} SYNs use Fast Open"
        return
    server = seen.counters["server"]
    refusable = sum(server.get(name, 0) for name in REFUSALS) if seen.overloaded else 0
    exempt: set[int] = set()
    if seen.tcp.cookies == "cold":
        exempt = _first_contacts(connections)
        first = {c.server: c for c in reversed(connections) if c.synack_time_ns is not None}
        taken = sum(c.syn_data_acked for c in first.values())
        if taken:
            yield f"cookies = cold, but {taken} origins took the data of their first SYN"
    refused = [c for c in connections if c.payload and not c.syn_data_acked]
    # A SYN that is sent again carries no data (RFC 7413 section 4.2.1): what came of the first one
    # is the link's doing, for no more connections than it lost packets.
    resent = [c for c in refused if c.sent_again or c.synack_time_ns is None][: seen.lost]
    exempt |= _preconnected(seen)
    for what, wrong in (
        ("carry no request", [c for c in connections if not c.carries_request]),
        ("had their data refused", [c for c in refused if c not in resent]),
    ):
        counted = [c for c in wrong if id(c) not in exempt]
        if len(counted) > refusable:
            yield (
                f"Fast Open arm: {len(counted)} of {len(connections)} SYNs {what}, "
                f"the first to {counted[0].server}"
            )


def _preconnected(seen: Evidence) -> set[int]:
    """Connections of PRECONNECT without TLS, as many as asked for: there was no request yet."""
    if not (seen.has("condition") and seen.condition.preconnect_pct is not None):
        return set()
    due, found = count_due(seen), set[int]()
    for connection, flow in zip(seen.connections, seen.flows.flows, strict=True):
        server = server_of_flow(seen, flow)
        if due[server] and not (connection.payload or connection.hello):
            due[server] -= 1
            found.add(id(connection))
    return found


def _first_contacts(connections: Sequence[Connection]) -> set[int]:
    """Connections to an origin opened before its first SYN-ACK with a new cookie came back."""
    arrived: dict[str, int] = {}
    for c in connections:
        if c.new_cookie and c.synack_time_ns is not None:
            arrived[c.server] = min(arrived.get(c.server, c.synack_time_ns), c.synack_time_ns)
    return {id(c) for c in connections if c.syn_time_ns <= arrived.get(c.server, -1)}


@check("fast open counters", "own_client", "connections", "counters", "whole_capture")
def check_counters(seen: Evidence) -> Iterator[str]:
    """Both kernels counted as many connections, and as many with Fast Open, as were captured."""
    connections, ends = seen.connections, seen.counters
    acked = [c for c in connections if c.syn_data_acked]
    # A client counts when it takes a SYN-ACK, a server when it takes a SYN.
    accepted = sum(1 for c in acked if not c.given_up)
    for end, counter, captured in (
        ("client", "TcpActiveOpens", len(connections)),
        ("client", "TcpExtTCPFastOpenActive", accepted),
        ("server", "TcpExtTCPFastOpenPassive", len(acked)),
    ):
        counted = ends[end].get(counter)
        if counted != captured:
            yield f"the {end}'s {counter} grew by {counted}, the capture shows {captured}"
