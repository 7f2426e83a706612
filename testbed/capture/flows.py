"""TCP connections of a capture, as the client opened them (RFC 9293)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path

from testbed.capture.packets import (
    ETHERNET_BYTES,
    FIN,
    HTTPS_PORT,
    SYN,
    Capture,
    Packet,
    behind,
    scale_of,
)
from testbed.capture.tls import HANDSHAKE_START
from testbed.model import KEPT_ALIVE_S

_PROTOCOL_AT, _TCP = {"IP": 23, "IP6": 20}, 6


@dataclass(slots=True)
class Flow:
    """A connection that the client opened: its SYN, and all packets as (by the client, packet).

    ``synack`` is the server's first SYN-ACK.
    """

    syn: Packet
    packets: list[tuple[bool, Packet]] = field(default_factory=list)
    synack: Packet | None = None

    @property
    def window_shift(self) -> int:
        """By how much the client scales the windows of packets after its SYN (RFC 7323)."""
        both_scale = self.synack is not None and scale_of(self.synack) is not None
        return both_scale * (scale_of(self.syn) or 0)

    @property
    def syns(self) -> int:
        """How often its SYN was sent."""
        return sum(by_client and packet.opens for by_client, packet in self.packets)

    @property
    def ends(self) -> tuple[str, str]:
        """Its client and its server, each ``address:port``."""
        return self.syn.sender, self.syn.receiver


@dataclass(frozen=True, slots=True)
class Flows:
    """Connections of a capture in the order of their SYNs, and all TCP of each direction.

    ``up`` and ``down`` count packets by and to the clients; ``arrivals`` are the times and the
    IP bytes of every IP packet that came down the link, in order, ``departures`` those of the
    client's own.  What belongs to a connection whose SYN was not captured, a late farewell, is only
    counted.
    """

    flows: tuple[Flow, ...]
    up: int
    down: int
    arrivals: tuple[tuple[int, int], ...]
    departures: tuple[tuple[int, int], ...] = ()


def read_flows(capture: Capture, clients: Collection[bytes]) -> Flows:
    """Sort the packets of ``capture`` by connection; ``clients`` are the client's addresses.

    Raises:
        ValueError: a frame or a TCP header is too short to be read.
    """
    ordered: list[Flow] = []
    flows: dict[tuple[bytes, int, bytes, int], Flow] = {}
    counts = {True: 0, False: 0}
    arrivals: list[tuple[int, int]] = []
    departures: list[tuple[int, int]] = []
    for packet in capture.packets:
        by_client = packet.source in clients
        if packet.source:
            (departures if by_client else arrivals).append((packet.at_ns, packet.ip_bytes))
        if packet.protocol != "TCP":
            _refuse_hidden(packet, capture.path)
            continue
        counts[by_client] += 1
        ours, theirs = (packet.source, packet.source_port), (packet.target, packet.target_port)
        key = (*ours, *theirs) if by_client else (*theirs, *ours)
        flow = flows.get(key)
        if by_client and packet.opens and (flow is None or flow.syn.seq != packet.seq):
            flow = flows[key] = Flow(packet)
            ordered.append(flow)
        if flow is None:
            continue
        if not by_client and packet.flags & SYN and flow.synack is None:
            flow.synack = packet
        flow.packets.append((by_client, packet))
    return Flows(tuple(ordered), counts[True], counts[False], tuple(arrivals), tuple(departures))


def _refuse_hidden(packet: Packet, pcap: Path) -> None:
    """Make sure that ``packet``, which does not read as TCP, is none."""
    size = len(packet.frame)
    if size < ETHERNET_BYTES:
        raise ValueError(
            f"{pcap}: a frame cannot be read: got {size}, {ETHERNET_BYTES} needed at least"
        )
    place = _PROTOCOL_AT.get(packet.protocol)
    if place is not None and packet.frame[place : place + 1] == bytes((_TCP,)):
        raise ValueError(f"{pcap}: a TCP header was not captured")


def first_packet_ns(capture: Capture, clients: Collection[bytes]) -> int | None:
    """Return when the client sent its first packet, which may be a look-up's."""
    return next((packet.at_ns for packet in capture.packets if packet.source in clients), None)


def before_farewell(flow: Flow) -> Sequence[tuple[bool, Packet]]:
    """Return the packets of ``flow`` until its server ends it for having been idle.

    What a client sends to see whether the other end is there carries nothing.
    """
    # Its timer may have begun with the connection, well before the last byte on a slow line.
    idle_ns = KEPT_ALIVE_S * 1_000_000_000 // 2
    last_ns = flow.syn.at_ns
    for index, (by_client, packet) in enumerate(flow.packets):
        if packet.payload_bytes or packet.flags & FIN:
            if not by_client and packet.at_ns - last_ns >= idle_ns:
                return flow.packets[:index]
            last_ns = packet.at_ns
    return flow.packets


def payloads(flow: Flow, *, by_client: bool) -> Iterator[tuple[int, Packet]]:
    """Yield the packets of one side with payload, each with the offset of its first byte.

    Data that overtook a lost SYN-ACK is left out: a client without a connection throws it away, and
    it comes again (RFC 9293 section 3.10.7.3).
    """
    first = flow.syn if by_client else flow.synack
    if first is None:
        return
    for sender, packet in flow.packets:
        if sender == by_client and packet.payload_bytes > 0 and packet.at_ns >= first.at_ns:
            yield behind(packet.seq, first.seq) - (0 if packet.flags & SYN else 1), packet


def speaks_tls(flow: Flow) -> bool:
    """Return whether the client speaks TLS there: at its usual port, or by its first bytes."""
    first = (packet.payload for offset, packet in payloads(flow, by_client=True) if not offset)
    return flow.syn.target_port == HTTPS_PORT or next(first, b"").startswith(HANDSHAKE_START)


def first_byte(sent: Iterable[Packet]) -> int:
    """Return the number of the first byte that who sent this sends, behind its SYN."""
    return next((packet.seq + 1 for packet in sent if packet.flags & SYN), 0)


def progress(flow: Flow) -> Iterator[tuple[int, int]]:
    """Yield when bytes of the server's came, in ns, and how many were there then, in order."""
    first = 0 if flow.synack is None else flow.synack.seq + 1
    return list_progress((packet for _, packet in payloads(flow, by_client=False)), first)


def list_progress(data: Iterable[Packet], first: int) -> Iterator[tuple[int, int]]:
    """Yield when data came, in ns, and how many bytes from number ``first`` on were there then.

    What is behind a gap is not there before the gap is closed.
    """
    reached, waiting = 0, [(0, 0)]
    for packet in data:
        start = reached + behind(packet.seq, first + reached & 0xFFFFFFFF)
        heappush(waiting, (start, start + packet.payload_bytes))
        while waiting and waiting[0][0] <= reached:
            reached = max(reached, heappop(waiting)[1])
        yield packet.at_ns, reached
