"""Summary of a capture: how connections were opened, and what both kernels counted."""

from __future__ import annotations

from testbed.model import Proof
from testbed.proof.evidence import Evidence


def summarise(seen: Evidence, problems: tuple[str, ...]) -> Proof:
    """Return the numbers of a proof that any capture of connections has, and its ``problems``."""
    connections = seen.connections
    client, server = seen.counters["client"], seen.counters["server"]
    return Proof(
        connections=len(connections),
        syns=sum(c.syns for c in connections),
        syns_with_payload=sum(1 for c in connections if c.payload),
        syn_payload_bytes=sum(c.payload for c in connections),
        cookie_requests=sum(1 for c in connections if c.cookie_request),
        syn_data_acked=sum(1 for c in connections if c.syn_data_acked),
        retransmits=sum(c.retransmits + c.syns - 1 for c in connections),
        client_counters=client,
        server_counters=server,
        problems=problems,
        tls_connections=sum(1 for c in connections if c.hello),
        hello_bytes=sum(c.hello for c in connections),
        syn_hello_bytes=sum(c.syn_hello for c in connections),
        given_up=sum(1 for c in connections if c.given_up),
        server_retransmits=server.get("TcpRetransSegs"),
    )
