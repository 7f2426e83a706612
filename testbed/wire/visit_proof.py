"""Each visit's part of the proof: how its connections began, and what crossed the line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from testbed.model import OpenedConnection, ServedConnection, VisitProof
from testbed.wire.handshakes import Handshake
from testbed.wire.packets import Capture
from testbed.wire.quic import QuicConnection
from testbed.wire.visits import VisitWindow


def prove_visits(
    windows: Sequence[VisitWindow],
    capture: Capture,
    clients: Collection[bytes],
    handshakes: Sequence[Handshake],
    connections: Sequence[QuicConnection],
    served: Sequence[ServedConnection],
    hosts: Mapping[str, str],
    rtt_ms: float,
) -> Iterator[VisitProof]:
    """Yield what each of the visits in ``windows`` shows.

    ``clients`` are the client's addresses; ``connections`` are those of QUIC, ``served`` is what
    the server's log says of all that carried requests, and ``hosts`` are by their addresses.
    """
    early = {(each.client, each.server): each.early for each in served}
    for window in windows:
        began = [each for each in handshakes if window.holds(each.began_ns)]
        hellos = [hello for each in began for hello in each.hellos]
        first = window.first_packet_ns(capture, clients)
        asked = [each.asked_ns for each in handshakes if window.holds(each.asked_ns or 0)]
        crossed = [
            (packet.source in clients, packet.ip_bytes)
            for packet in capture.packets
            if window.holds(packet.at_ns)
        ]
        packets = Counter(
            f"{'up' if packet.by_client else 'down'}.{packet.kind}"
            for connection in connections
            for packet in connection.packets
            if window.holds(packet.at_ns)
        )
        versions = {v for each in connections if window.holds(each.began_ns) for v in each.versions}
        yield VisitProof(
            tcp=sum(1 for each in began if not each.quic),
            quic=sum(1 for each in began if each.quic),
            hellos=len(hellos),
            hello_bytes=sum(each.hello_bytes for each in began),
            offered=dict(Counter(group for hello in hellos for group in hello.groups)),
            agreed=dict(Counter(g for each in began if each.answer for g in each.answer.groups)),
            resumed=sum(1 for each in began if each.resumed),
            early=sum(1 for each in began if each.early_bytes),
            early_bytes=sum(each.early_bytes for each in began),
            accepted=sum(1 for each in began if each.early_bytes and each.accepted),
            early_requests=sum(early.get((each.client, each.server), 0) for each in began),
            round_trips=_round_trips(first, asked, rtt_ms),
            up_bytes=sum(size for by_client, size in crossed if by_client),
            down_bytes=sum(size for by_client, size in crossed if not by_client),
            packets=dict(sorted(packets.items())),
            versions=tuple(f"{version:x}" for version in sorted(versions)),
            opened=tuple(_describe(each, hosts, first or 0) for each in began),
        )


def _describe(handshake: Handshake, hosts: Mapping[str, str], first_ns: int) -> OpenedConnection:
    """Describe a connection of a visit whose first packet left at ``first_ns``."""

    def since_first(at_ns: int | None) -> float | None:
        return None if at_ns is None else (at_ns - first_ns) / 1e6

    address = handshake.server.rpartition(":")[0]
    return OpenedConnection(
        host=hosts.get(address, address),
        quic=handshake.quic,
        began_ms=(handshake.began_ns - first_ns) / 1e6,
        hello_ms=since_first(handshake.hello_ns),
        hello_bytes=handshake.hello_bytes,
        syn_bytes=handshake.syn_bytes,
        early_bytes=handshake.early_bytes,
        asked_ms=since_first(handshake.asked_ns),
    )


def _round_trips(
    first_ns: int | None, asked_ns: Sequence[int | None], rtt_ms: float
) -> float | None:
    """Round trips until the first request left, to a ten-thousandth."""
    times = [at_ns for at_ns in asked_ns if at_ns is not None]
    if first_ns is None or not times:
        return None
    return round((min(times) - first_ns) / 1e6 / rtt_ms, 4)
