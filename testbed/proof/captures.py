"""Captures are whole: both directions of every connection are in them, and nothing else is.

What one end acknowledges, the other has sent; so all of it must have been captured at the client,
in both arms.  And the client's kernel must not have taken or sent more than the capture shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testbed.capture.flows import Flow, payloads
from testbed.capture.lookups import is_lookup
from testbed.capture.packets import (
    ACK,
    FIN,
    PORT_UNREACHABLE,
    RST,
    TOO_LONG,
    Capture,
    Packet,
    behind,
    is_quic,
    read_unreachable,
)
from testbed.capture.tcpdump import SNAP_BYTES
from testbed.proof.check import check
from testbed.proof.evidence import Evidence


@check("whole frames", "capture")
def check_whole(seen: Evidence) -> Iterator[str]:
    """Frames were captured as long as the proof needs them: ``SNAP_BYTES``."""
    cut = sum(1 for p in seen.capture.packets if len(p.frame) < min(p.frame_bytes, SNAP_BYTES))
    if cut:
        yield f"{cut} frames were captured with less than {SNAP_BYTES} bytes"


@check("both ways", "flows", "link", "whole_capture")
def check_both_ways(seen: Evidence) -> Iterator[str]:
    """What one end acknowledged, the capture shows the other to have sent."""
    all_flows = seen.flows.flows
    silent = sum(1 for flow in all_flows if flow.synack is None and _is_open(flow))
    if silent:
        yield f"the SYN-ACKs of {silent} of {len(all_flows)} connections are not in the capture"
    for by_client, sender in ((False, "server"), (True, "client")):
        holes = [count for flow in all_flows if (count := _missing(flow, by_client=by_client))]
        if holes:
            yield (
                f"{len(holes)} of {len(all_flows)} connections: {sum(holes)} bytes of the {sender} "
                "were acknowledged, and are not in the capture"
            )


@check("segments counted", "flows", "link", "client_counters", "whole_capture")
def check_counted(seen: Evidence) -> Iterator[str]:
    """No kernel took or sent more than was captured at its end, nor less in a load in virtual time.

    What is sent again is counted apart, but for SYN-ACKs (net/ipv4/tcp_output.c), IPv6's datagrams
    are as well, and what comes for a socket that is closed, or about to be, nobody takes.
    """
    recorded = seen.has("transits") and bool(seen.transits)
    # Of what was damaged, and cut again for a narrow path, the captures tell otherwise.
    recorded &= not (seen.link.corrupt_pct or seen.counted.get("down.too_long"))
    exact = seen.virtual_time and seen.has("logs") and recorded
    yield from _check_end(seen, "client", seen.client_counters, seen.capture, exact=exact)
    if not exact:
        return
    own = seen.counters["server"]
    yield from _check_end(seen, "server", own, seen.at_server, exact=True)
    opened = own.get("TcpPassiveOpens", 0)
    least = sum(each.answered and not each.given_up for each in seen.connections)
    if not least <= opened <= len(seen.connections):
        yield f"the server's kernel opened {opened} connections, captured were {least}"


def _check_end(
    seen: Evidence, end: str, own: Mapping[str, int], at_end: Capture, *, exact: bool
) -> Iterator[str]:
    """Yield what the kernel of an end counted otherwise than what was captured there."""
    packets, by_client = [p for p in at_end.packets if seen.is_of_client(p)], end == "client"
    tcp, udp = (
        [(p.source in seen.clients) == by_client for p in packets if (p.protocol, p.ip) in kinds]
        for kinds in ((("TCP", "4"), ("TCP", "6")), (("UDP", "4"),))
    )
    # What was damaged is in no capture of whole packets.
    taken, sent = seen.flows.down if by_client else tcp.count(False), own.get("TcpOutSegs", 0)
    if exact:
        answers = 0 if by_client else own.get("TcpExtTCPSynRetrans", 0)
        sent += own.get("TcpRetransSegs", 0) - answers
    counts = [("took", "segments", own.get("TcpInSegs", 0), taken, 0)]
    counts += [("sent", "segments", sent, tcp.count(True), 0)]
    if exact or seen.quic:
        refused = sum(read_unreachable(packet) == PORT_UNREACHABLE for packet in packets)
        unread = refused + _unread(
            packets, [(p.source in seen.clients) == by_client for p in packets]
        )
        came, left = (own.get(f"Udp{which}Datagrams", 0) for which in ("In", "Out"))
        counts += [("took", "datagrams", came, udp.count(False), unread)]
        counts += [("sent", "datagrams", left, udp.count(True), 0)]
        damaged = () if seen.undamaged else seen.damaged
        broken = sum(packet.protocol == "UDP" for packet in damaged)
        counts += [("refused", "datagrams", own.get("UdpInErrors", 0), broken, 0)]
    for did, what, counted, captured, less in counts:
        if not (captured - less if exact else 0) <= counted <= captured:
            yield f"the {end}'s kernel {did} {counted} {what}, the capture shows {captured}"


def _unread(packets: Sequence[Packet], own: Sequence[bool]) -> int:
    """Return how many datagrams their end need not have read.

    Over QUIC they are those behind its last word: its socket may be closed.  Elsewhere they are
    those behind the first since its last word, such as copies of an answer that it has.
    """
    speaking, answered, unread = set[frozenset[str]](), set[frozenset[str]](), 0
    said = [frozenset((packet.sender, packet.receiver)) for packet in packets]
    for packet, ends, sent in zip(reversed(packets), reversed(said), reversed(own), strict=True):
        if sent:
            speaking.add(ends)
        else:
            unread += is_quic(packet) and ends not in speaking
    for packet, ends, sent in zip(packets, said, own, strict=True):
        if packet.protocol != "UDP" or is_quic(packet):
            continue
        if sent:
            answered.discard(ends)
        else:
            unread += ends in answered
            answered.add(ends)
    return unread


@check("strange packets", "virtual_time", "capture", "flows", "link", "whole_capture")
def check_strangers(seen: Evidence) -> Iterator[str]:
    """Every packet is of a connection, a look-up or a late farewell of what was asked for.

    Datagrams of QUIC's port are the load's, where it has connections, and a client whose connection
    is closed refuses what still comes.  As many times as the link made copies on the way down the
    client may have had no use for one, and have said so by ICMP.  Of a narrow path routers may tell
    by ICMP.  A command may send what it likes, between both ends.
    """
    ends = {flow.ends for flow in seen.flows.flows}
    quic, narrow = bool(seen.quic), seen.link.path_mtu_bytes is not None
    copies = seen.counted.get("down.duplicated", 0)
    strangers = [
        packet
        for packet in seen.capture.packets
        if _is_strange(packet, ends)
        and not (quic and is_quic(packet))
        and (seen.own_client or packet.protocol == "TCP" or not seen.is_of_client(packet))
    ]
    told = [(packet, read_unreachable(packet)) for packet in strangers]
    refusals = [packet for packet, code in told if code == PORT_UNREACHABLE][:copies]
    refusals += [packet for packet, code in told if quic and code == PORT_UNREACHABLE]
    refusals += [packet for packet, code in told if narrow and code == TOO_LONG]
    strangers = [packet for packet in strangers if packet not in refusals]
    if strangers:
        first = strangers[0]
        ends_of = f" from {first.sender} to {first.receiver}" if first.source else ""
        yield (
            f"{len(strangers)} packets in the capture are not of the load, the first of them "
            f"{first.protocol}{ends_of}"
        )


def _is_open(flow: Flow) -> bool:
    """Whether the client acknowledged anything, so that there was a SYN-ACK."""
    return any(
        by_client and packet.flags & ACK and not packet.flags & RST
        for by_client, packet in flow.packets
    )


def _missing(flow: Flow, *, by_client: bool) -> int:
    """Bytes of one side that the other acknowledged and that were never captured."""
    first = flow.syn if by_client else flow.synack
    if first is None:
        return 0
    start = first.seq + 1
    acknowledged, ended = 0, 0
    for sender, packet in flow.packets:
        if sender == by_client:
            ended = ended or bool(packet.flags & FIN)
        elif packet.flags & ACK and not packet.flags & RST:
            acknowledged = max(acknowledged, behind(packet.ack, start))
    # A FIN takes a number, too.
    return max(0, acknowledged - ended - _covered(flow, by_client=by_client, end=acknowledged))


def _covered(flow: Flow, *, by_client: bool, end: int) -> int:
    """Return how many distinct bytes of one side, before offset ``end``, were captured."""
    total, reached = 0, 0
    for offset, packet in sorted(payloads(flow, by_client=by_client), key=lambda piece: piece[0]):
        last = min(offset + packet.payload_bytes, end)
        total += max(0, last - max(offset, reached))
        reached = max(reached, last)
    return total


def _is_strange(packet: Packet, ends: set[tuple[str, str]]) -> bool:
    if packet.protocol == "TCP":
        both = {(packet.sender, packet.receiver), (packet.receiver, packet.sender)}
        return packet.payload_bytes > 0 and not both & ends
    return not is_lookup(packet)
