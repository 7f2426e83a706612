"""The proof: did the mechanism under test happen on the wire, in every connection (RFC 7413)?

From the client's capture: each connection's SYN, its payload, its Fast Open option, and how much
of it the SYN-ACK acknowledged.  From both ends' counters: what the kernels say of the same.  A TLS
client's first request is its hello (section 6.3.2), and a SYN may hold the beginning of it only:
what rode in the SYN is counted, the rest follows a round trip later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from testbed.model import Proof, TcpSpec
from testbed.wire.flows import Flow, Flows
from testbed.wire.packets import ACK, FAST_OPEN, RST, SYN, Packet, behind, find_option
from testbed.wire.tls import HANDSHAKE_START, record_bytes

REQUEST_STARTS = (b"GET ", b"HEAD ", b"POST ", HANDSHAKE_START)


REFUSALS = (
    "TcpExtTCPFastOpenListenOverflow",
    "TcpExtTCPFastOpenPassiveFail",
    "TcpExtSyncookiesSent",
)
"""What a server's kernel counts when it takes a SYN and not its data: no room for it, a cookie that
is not its own, or an answer by a SYN cookie."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What the capture shows of one TCP connection that the client opened.

    ``hello`` counts the bytes of the client's first TLS record, ``syn_hello`` those of them that
    were in the SYN; both are 0 on a connection without TLS.  ``sent_again`` says that the SYN went
    again before a SYN-ACK came, and ``given_up`` that the client had
    closed it before its SYN-ACK came: no socket was left to take that.
    """

    server: str
    syn_time_ns: int
    sequence: int
    syns: int
    sent_again: bool
    payload: int
    carries_request: bool
    hello: int
    syn_hello: int
    fastopen_option: bool
    cookie_request: bool
    synack_time_ns: int | None
    given_up: bool
    syn_data_acked: bool
    new_cookie: bool
    retransmits: int


def read_connection(flow: Flow) -> Connection:
    """Read the opening of ``flow``, its first TLS record, and how much was sent again."""
    syn, synack = flow.syn, flow.synack
    cookie = find_option(syn, FAST_OPEN)
    acked = 0 if synack is None else behind(synack.ack, syn.seq + 1)
    syn_hello = record_bytes(syn.payload)
    sent = [
        (by_client, packet.seq, packet.payload_bytes)
        for by_client, packet in flow.packets
        if packet.payload_bytes and not packet.flags & SYN
    ]
    return Connection(
        server=syn.receiver,
        syn_time_ns=syn.at_ns,
        sequence=syn.seq,
        syns=sum(1 for by_client, packet in flow.packets if by_client and packet.opens),
        sent_again=_is_sent_again(flow),
        payload=syn.payload_bytes,
        carries_request=syn.payload_bytes > 0 and syn.payload.startswith(REQUEST_STARTS),
        hello=syn_hello or _find_hello(flow),
        syn_hello=min(syn.payload_bytes, syn_hello),
        fastopen_option=cookie is not None,
        cookie_request=cookie == b"",
        synack_time_ns=None if synack is None else synack.at_ns,
        given_up=_is_given_up(flow),
        syn_data_acked=syn.payload_bytes > 0 and acked == syn.payload_bytes,
        new_cookie=synack is not None and bool(find_option(synack, FAST_OPEN)),
        retransmits=len(sent) - len(set(sent)),
    )


def _find_hello(flow: Flow) -> int:
    """Bytes of the TLS record with which the client begins after its SYN; 0: none."""
    starts = (
        record_bytes(packet.payload)
        for by_client, packet in flow.packets
        if by_client and not packet.flags & SYN and behind(packet.seq, flow.syn.seq) == 1
    )
    return next(filter(None, starts), 0)


def _is_sent_again(flow: Flow) -> bool:
    before = takewhile(lambda sent: sent[1] is not flow.synack, flow.packets)
    return sum(1 for by_client, packet in before if by_client and packet.opens) > 1


def _is_given_up(flow: Flow) -> bool:
    """Whether the client answered the SYN-ACK without a socket for it.

    It sends RST and no ACK then, with the number that was acknowledged (RFC 9293 section 3.5.2,
    group 1); a socket that ends a connection sends both.
    """
    synack: Packet | None = None
    for by_client, packet in flow.packets:
        if packet is flow.synack:
            synack = packet
        elif synack is not None and by_client and not packet.opens:
            return packet.flags & (RST | ACK) == RST and packet.seq == synack.ack
    return False


def prove(
    flows: Flows,
    counters: dict[str, dict[str, int]],
    spec: TcpSpec,
    *,
    whole: bool = True,
    overload: bool = False,
    silent: bool = False,
    lost: int = 0,
    quic: bool = False,
) -> Proof:
    """Hold the wire and the counters against what ``spec`` asked for.

    Fast Open arm: every connection's SYN carries the request and the server took it (``cold``:
    except connections opened before the origin's new cookie arrived).  Control arm: no SYN
    carries anything, and no cookie is asked for.  A capture that is not ``whole``, but the
    beginning of one, is not held against the counters.  With ``overload`` a server may leave a SYN
    without an answer, and refuse the data of as many as its kernel counted.  ``silent``: the
    server leaves some without an answer for good, and these are not judged.  ``lost`` are packets
    that the link says it lost or dropped: as many SYNs may have gone again, without their request.
    ``quic``: there need be no TCP.
    """
    connections = [read_connection(flow) for flow in flows.flows]
    client, server = counters["client"], counters["server"]
    refusable = sum(server.get(name, 0) for name in REFUSALS) if overload else 0
    judged = [c for c in connections if is_answered(c)] if overload or silent else connections
    problems = [] if connections or quic else ["the capture shows no connection"]
    problems += _check_arm(judged, spec, refusable, lost)
    if whole:
        problems += _check_counters(connections, client, server)
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
        problems=tuple(problems),
        tls_connections=sum(1 for c in connections if c.hello),
        hello_bytes=sum(c.hello for c in connections),
        syn_hello_bytes=sum(c.syn_hello for c in connections),
        given_up=sum(1 for c in connections if c.given_up),
        server_retransmits=server.get("TcpRetransSegs"),
    )


def is_answered(connection: Connection) -> bool:
    """Return whether the first SYN was answered: one that is sent again carries no data."""
    return connection.synack_time_ns is not None and connection.syns == 1


def _check_arm(
    connections: list[Connection], spec: TcpSpec, refusable: int, lost: int
) -> Iterator[str]:
    if not spec.tfo:
        loaded = [c for c in connections if c.payload or c.fastopen_option]
        if loaded:
            yield f"control arm: {len(loaded)} of {len(connections)} SYNs use Fast Open"
        return
    exempt = _first_contacts(connections) if spec.cookies == "cold" else set()
    refused = [c for c in connections if c.payload and not c.syn_data_acked]
    # A SYN that is sent again carries no data (RFC 7413 section 4.2.1): what came of the first one
    # is the link's doing, for no more connections than it lost packets.
    resent = [c for c in refused if c.sent_again][:lost]
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


def _first_contacts(connections: list[Connection]) -> set[int]:
    """Connections to an origin opened before its first SYN-ACK with a new cookie came back."""
    arrived: dict[str, int] = {}
    for c in connections:
        if c.new_cookie and c.synack_time_ns is not None:
            arrived[c.server] = min(arrived.get(c.server, c.synack_time_ns), c.synack_time_ns)
    return {id(c) for c in connections if c.syn_time_ns <= arrived.get(c.server, -1)}


def _check_counters(
    connections: list[Connection], client: dict[str, int], server: dict[str, int]
) -> Iterator[str]:
    acked = [c for c in connections if c.syn_data_acked]
    # A client counts when it takes a SYN-ACK, a server when it takes a SYN.
    accepted = sum(1 for c in acked if not c.given_up)
    for end, counter, captured in (
        ("client", "TcpActiveOpens", len(connections)),
        ("client", "TcpExtTCPFastOpenActive", accepted),
        ("server", "TcpExtTCPFastOpenPassive", len(acked)),
    ):
        counted = (client if end == "client" else server).get(counter)
        if counted != captured:
            yield f"the {end}'s {counter} grew by {counted}, the capture shows {captured}"
