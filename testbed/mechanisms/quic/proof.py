"""QUIC as it was asked for: on every origin and nowhere else, version 1, all of it in the capture.

What one end acknowledges, the other has sent (RFC 9000 section 13.2), so that its packet must be in
the capture at the client.  Numbers may be left out by whoever sends (section 21.4), so that a gap
proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.capture.flows import payloads
from testbed.capture.packets import HTTPS_PORT
from testbed.capture.quic import NEGOTIATION, RETRY, QuicConnection
from testbed.capture.quic_frames import ACK
from testbed.proof.check import check
from testbed.proof.evidence import Evidence

VERSION = 1
SHOWN = 3


@check("quic", "load", "condition", "flows", "quic", "served", source="RFC 9000, RFC 9114")
def check_quic(seen: Evidence) -> Iterator[str]:
    """QUIC is spoken with every origin where it was asked for, and with none elsewhere.

    But for WebSockets, of which each has a connection of TCP's.  It is version 1, without a retry,
    and all packets are in the capture, and opened by the keys.
    """
    condition, connections = seen.condition, seen.quic
    if condition.protocol != "h3":
        if connections:
            yield (
                f"protocol = {condition.protocol}, but {len(connections)} connections used QUIC, "
                f"the first {connections[0].name}"
            )
        return
    over_tcp = [
        flow for flow in seen.flows.flows
        if flow.syn.target_port == HTTPS_PORT and any(payloads(flow, by_client=True))
    ]  # fmt: skip
    if len(over_tcp) > (seen.replay.secured_sockets if seen.has("replay") else 0):
        syn = over_tcp[0].syn
        yield (
            f"protocol = h3, but {len(over_tcp)} TCP connections carried data, the first "
            f"{syn.sender} to {syn.receiver}"
        )
    spoken = {connection.server for connection in connections}
    silent = sorted({each.server for each in seen.served} - spoken)
    if silent:
        yield f"protocol = h3, but there is no QUIC with {', '.join(silent[:SHOWN])}"
    for connection in connections:
        yield from check_connection(connection)


def check_connection(connection: QuicConnection) -> Iterator[str]:
    """Yield what is wrong with one connection."""
    kinds = {packet.kind for packet in connection.packets}
    for kind, words in ((RETRY, "Retry"), (NEGOTIATION, "version negotiation")):
        if kind in kinds:
            yield f"the server answered {connection.name} by {words}"
    others = connection.versions - {VERSION, 0}
    if others:
        yield f"{connection.name} speaks version {min(others):#x} of QUIC"
    if connection.unopened:
        yield (
            f"{connection.unopened} packets of {connection.name} cannot be opened by the secrets "
            "that the client wrote down"
        )
    for by_client, sender in ((True, "client"), (False, "server")):
        missing = _missing(connection, by_client=by_client)
        if missing:
            yield (
                f"{connection.name}: {len(missing)} packets of the {sender} were acknowledged, and "
                f"are not in the capture, the first of them number {missing[0][1]}"
            )


def _missing(connection: QuicConnection, *, by_client: bool) -> list[tuple[str, int]]:
    """Packets of one end, by space and number, that the other acknowledged and nobody captured."""
    sent: dict[str, set[int]] = {}
    acked: dict[str, set[tuple[int, int]]] = {}
    for packet in connection.packets:
        if packet.number is None or packet.frames is None:
            continue
        if packet.by_client == by_client:
            sent.setdefault(packet.space, set()).add(packet.number)
            continue
        for frame in packet.frames:
            if frame.kind == ACK:
                acked.setdefault(packet.space, set()).update(frame.acked)
    return sorted(
        (space, number)
        for space, ranges in acked.items()
        for number in _numbers(ranges) - sent.get(space, set())
    )


def _numbers(ranges: set[tuple[int, int]]) -> set[int]:
    numbers: set[int] = set()
    reached = -1
    for first, last in sorted(ranges):
        if last > reached:
            numbers.update(range(max(first, reached + 1), last + 1))
            reached = last
    return numbers
