"""Both directions of every connection are in the capture, and nothing else is.

What one end acknowledges, the other has sent; so all of it must have been captured at the client,
in both arms.  And the client's kernel must not have taken or sent more than the capture shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.wire.capture import SNAP_BYTES
from testbed.wire.flows import Flow, Flows, payloads
from testbed.wire.lookups import DNS_PORT
from testbed.wire.packets import (
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


def check_both_ways(flows: Flows, counters: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence for each thing that the capture must hold and does not.

    ``counters`` are the client's, of a time within that of the capture.
    """
    return tuple(_complain(flows, counters))


def check_whole(capture: Capture) -> tuple[str, ...]:
    """Return a sentence if frames were cut shorter than the proof needs them: ``SNAP_BYTES``."""
    cut = sum(1 for p in capture.packets if len(p.frame) < min(p.frame_bytes, SNAP_BYTES))
    return (f"{cut} frames were captured with less than {SNAP_BYTES} bytes",) if cut else ()


def check_strangers(
    capture: Capture, flows: Flows, copies: int = 0, *, narrow: bool = False, quic: bool = False
) -> Iterator[str]:
    """Yield a sentence if packets are of no connection, no look-up and no late farewell.

    ``quic``: datagrams of its port are the load's, and a client whose connection is closed refuses
    what still comes.
    As many times as the link made ``copies`` on the way down the client may have had no use for
    one, and have said so by ICMP.  Of a ``narrow`` path routers may tell by ICMP.
    """
    ends = {(flow.syn.sender, flow.syn.receiver) for flow in flows.flows}
    strangers = [
        packet
        for packet in capture.packets
        if _is_strange(packet, ends) and not (quic and is_quic(packet))
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


def _complain(flows: Flows, counters: Mapping[str, int]) -> Iterator[str]:
    all_flows = flows.flows
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
    for counter, captured, words in (
        ("TcpInSegs", flows.down, "took"),
        ("TcpOutSegs", flows.up, "sent"),
    ):
        counted = counters.get(counter, 0)
        if counted > captured:
            yield f"the client's kernel {words} {counted} segments, the capture shows {captured}"


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
    return packet.protocol != "UDP" or DNS_PORT not in (packet.source_port, packet.target_port)
