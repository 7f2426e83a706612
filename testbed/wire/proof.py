"""The proof: did the mechanism under test happen on the wire, in every connection (RFC 7413)?

From the client's capture: each connection's SYN, its payload, its Fast Open option, and how much
of it the SYN-ACK acknowledged.  From both ends' counters: what the kernels say of the same.  A TLS
client's first request is its hello (section 6.3.2), and a SYN may hold the beginning of it only:
what rode in the SYN is counted, the rest follows a round trip later.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

from testbed.model import Proof, TcpSpec
from testbed.wire.packets import payload_bytes, read_tcp
from testbed.wire.tls import HANDSHAKE_START, record_bytes

FASTOPEN_OPTION = 34
REQUEST_STARTS = (b"GET ", b"HEAD ", b"POST ", HANDSHAKE_START)


@dataclass(slots=True)
class Connection:
    """What the capture shows of one TCP connection that the client opened.

    ``hello`` counts the bytes of the client's first TLS record, ``syn_hello`` those of them that
    were in the SYN; both are 0 on a connection without TLS.  ``given_up`` says that the client had
    closed it before its SYN-ACK came: no socket was left to take that.
    """

    server: str
    syn_time_ns: int
    sequence: int
    syns: int = 1
    payload: int = 0
    carries_request: bool = False
    hello: int = 0
    syn_hello: int = 0
    fastopen_option: bool = False
    cookie_request: bool = False
    synack_time_ns: int | None = None
    synack_acked: int | None = None
    answered: bool = False
    given_up: bool = False
    syn_data_acked: bool = False
    new_cookie: bool = False
    sent: set[tuple[str, int, int]] = field(default_factory=set)
    retransmits: int = 0


def read_connections(pcap: Path) -> list[Connection]:
    """Connections in the order of their first SYN.

    Raises:
        OSError, ValueError: the capture cannot be read.
    """
    found: list[Connection] = []
    connections: dict[tuple[bytes, int, bytes, int], Connection] = {}
    for time_ns, packet in read_tcp(pcap):
        tcp = packet.data
        forward = (packet.src, tcp.sport, packet.dst, tcp.dport)
        backward = (packet.dst, tcp.dport, packet.src, tcp.sport)
        if tcp.flags & dpkt.tcp.TH_SYN and not tcp.flags & dpkt.tcp.TH_ACK:
            known = connections.get(forward)
            if known is not None and known.sequence == tcp.seq:
                known.syns += 1
                continue
            found.append(_open_connection(time_ns, packet))
            connections[forward] = found[-1]
            continue
        if tcp.flags & dpkt.tcp.TH_SYN and backward in connections:
            _note_synack(connections[backward], time_ns, tcp)
        elif forward in connections:
            _note_answer(connections[forward], tcp)
            _note_data(connections[forward], "client", packet)
        elif backward in connections:
            _note_data(connections[backward], "server", packet)
    return found


def prove(pcap: Path, counters: dict[str, dict[str, int]], spec: TcpSpec) -> Proof:
    """Hold the wire and the counters against what ``spec`` asked for.

    Fast Open arm: every connection's SYN carries the request and the server took it (``cold``:
    except connections opened before the origin's new cookie arrived).  Control arm: no SYN
    carries anything, and no cookie is asked for.
    """
    connections = read_connections(pcap)
    client, server = counters["client"], counters["server"]
    problems = [*_check_arm(connections, spec), *_check_counters(connections, client, server)]
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


def _check_arm(connections: list[Connection], spec: TcpSpec) -> Iterator[str]:
    if not connections:
        yield "the capture shows no connection"
    if not spec.tfo:
        loaded = [c for c in connections if c.payload or c.fastopen_option]
        if loaded:
            yield f"control arm: {len(loaded)} of {len(connections)} SYNs use Fast Open"
        return
    exempt = _first_contacts(connections) if spec.cookies == "cold" else set()
    for what, wrong in (
        ("carry no request", [c for c in connections if not c.carries_request]),
        ("had their data refused", [c for c in connections if c.payload and not c.syn_data_acked]),
    ):
        counted = [c for c in wrong if id(c) not in exempt]
        if counted:
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
    taken = sum(1 for c in acked if not c.given_up)
    for end, counter, seen in (
        ("client", "TcpActiveOpens", len(connections)),
        ("client", "TcpExtTCPFastOpenActive", taken),
        ("server", "TcpExtTCPFastOpenPassive", len(acked)),
    ):
        said = (client if end == "client" else server).get(counter)
        if said != seen:
            yield f"the {end}'s {counter} grew by {said}, the capture shows {seen}"


def _fastopen_option(tcp: dpkt.tcp.TCP) -> bytes | None:
    for kind, value in dpkt.tcp.parse_opts(tcp.opts):
        if kind == FASTOPEN_OPTION:
            return bytes(value)
    return None


def _open_connection(time_ns: int, packet: dpkt.ip.IP) -> Connection:
    tcp = packet.data
    payload = payload_bytes(packet)
    hello = record_bytes(bytes(tcp.data))
    option = _fastopen_option(tcp)
    return Connection(
        server=f"{socket.inet_ntoa(packet.dst)}:{tcp.dport}",
        syn_time_ns=time_ns,
        sequence=tcp.seq,
        payload=payload,
        carries_request=payload > 0 and bytes(tcp.data).startswith(REQUEST_STARTS),
        hello=hello,
        syn_hello=min(payload, hello),
        fastopen_option=option is not None,
        cookie_request=option == b"",
    )


def _note_synack(connection: Connection, time_ns: int, tcp: dpkt.tcp.TCP) -> None:
    if connection.synack_time_ns is not None:
        return
    connection.synack_time_ns = time_ns
    connection.synack_acked = tcp.ack
    acknowledged = (tcp.ack - connection.sequence - 1) & 0xFFFFFFFF
    connection.syn_data_acked = connection.payload > 0 and acknowledged == connection.payload
    connection.new_cookie = bool(_fastopen_option(tcp))


def _note_answer(connection: Connection, tcp: dpkt.tcp.TCP) -> None:
    """Note what the client made of the SYN-ACK.

    Without a socket for it, it sends RST and no ACK, with the number that was acknowledged (RFC
    9293 section 3.5.2, group 1); a socket that ends a connection sends both.
    """
    if connection.synack_time_ns is None or connection.answered:
        return
    connection.answered = True
    bare = tcp.flags & (dpkt.tcp.TH_RST | dpkt.tcp.TH_ACK) == dpkt.tcp.TH_RST
    connection.given_up = bare and tcp.seq == connection.synack_acked


def _note_data(connection: Connection, sender: str, packet: dpkt.ip.IP) -> None:
    size = payload_bytes(packet)
    tcp = packet.data
    if size:
        if sender == "client" and tcp.seq == (connection.sequence + 1) & 0xFFFFFFFF:
            connection.hello = connection.hello or record_bytes(bytes(tcp.data))
        segment = (sender, tcp.seq, size)
        if segment in connection.sent:
            connection.retransmits += 1
        connection.sent.add(segment)
