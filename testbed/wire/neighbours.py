"""Neighbours of a page load by captures of their own: that they did as asked, and what came of it.

The capture at the neighbour has all its packets, that at its remote end the datagrams, and how
connections open and end.  When a flow
begins, whether it goes on, how much of it got through and with which delay is seen there; only the
congestion control of a connection, and whether it always had data to send, its kernel has to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from testbed.model import NEIGHBOUR_FILE, REMOTE_FILE, NeighbourFlow
from testbed.model.traffic import CALL_STAMPS, Neighbour, PlannedFlow, ToldConnection, list_flows
from testbed.wire.packets import FIN, RST, Capture, Packet, behind, read_capture

SLACK_S = 0.005
"""By how much a flow, or a datagram, may begin beside its time."""
IDLE_S = 0.1
"""For how long a connection that always has data to send may have had none acknowledged or due."""
_STAMP = slice(4, 8)
"""Of RTP's header, which the payload of a datagram begins with (RFC 3550 section 5.1)."""


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """From when to when a page was loaded, in ns.

    ``exact`` says whether the client's first packet is the start of its load: a user's own command
    may do other things before.
    """

    start_ns: int
    end_ns: int
    exact: bool = True

    def since_s(self, at_ns: int) -> float:
        """Return a time in seconds from the start."""
        return (at_ns - self.start_ns) / 1e9

    def end_of(self, neighbour: Neighbour) -> int:
        """Return until when ``neighbour`` has to go on: to its end, or that of the load."""
        if neighbour.to_s is None:
            return self.end_ns
        return min(self.end_ns, self.start_ns + round(neighbour.to_s * 1e9))


@dataclass(slots=True)
class _Seen:
    """Packets of a flow: out of the neighbour and back to it, and what its remote end has."""

    out: list[Packet] = field(default_factory=list)
    back: list[Packet] = field(default_factory=list)
    arrived: list[Packet] = field(default_factory=list)
    left: list[Packet] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Company:
    """What neighbours of a load did: their flows, what is wrong with them, their own packets."""

    flows: tuple[NeighbourFlow, ...]
    problems: tuple[str, ...]
    packets: tuple[Packet, ...]
    address: bytes

    def with_packets(self, others: Iterable[Packet]) -> tuple[Packet, ...]:
        """Return all packets on this side of the line, ``others`` included, in order of time."""
        return tuple(sorted((*others, *self.packets), key=lambda packet: packet.at_ns))

    def with_arrivals(self, others: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return all that came down the line (``Flows.arrivals``), ``others`` included."""
        own = ((p.at_ns, p.ip_bytes) for p in self.packets if p.target == self.address)
        return tuple(sorted((*others, *own)))


def read_company(
    out: Path,
    neighbours: tuple[Neighbour, ...],
    told: Iterable[ToldConnection],
    window: LoadWindow,
    addresses: tuple[bytes, bytes],
) -> Company:
    """Return what neighbours did by their captures in ``out``; arguments as below.

    Raises:
        OSError, ValueError: a capture cannot be read.
    """
    here, there = (read_capture(out / name) for name in (NEIGHBOUR_FILE, REMOTE_FILE))
    flows, problems = read_neighbours((here, there), neighbours, told, window, addresses)
    return Company(flows, problems, here.packets, addresses[0])


def read_neighbours(
    captures: tuple[Capture, Capture],
    neighbours: tuple[Neighbour, ...],
    told: Iterable[ToldConnection],
    window: LoadWindow,
    addresses: tuple[bytes, bytes],
) -> tuple[tuple[NeighbourFlow, ...], tuple[str, ...]]:
    """Return what each flow came to, and a sentence for each thing that is not as asked.

    Args:
        captures: at the neighbour, and at its remote end.
        neighbours: what was asked.
        told: by the kernel, of connections.
        window: of the load.
        addresses: of the neighbour and of its remote end.
    """
    flows = {flow.port: flow for flow in list_flows(neighbours)}
    seen = {port: _Seen() for port in flows}
    strangers = _sort(captures, seen, addresses)
    by_port = {each.port: each for each in told}
    found, problems = [], []
    if strangers:
        first = strangers[0]
        problems.append(
            f"{len(strangers)} packets at the neighbours are of none of them, the first of them "
            f"{first.protocol} from {first.sender} to {first.receiver}"
        )
    for port, flow in flows.items():
        if flow.neighbour.algorithm:
            said = by_port.get(port, ToldConnection(port))
            measured, wrong = _read_connection(flow, seen[port], said, window)
        else:
            measured, wrong = _read_datagrams(flow, seen[port], window)
        found += [measured] if measured is not None else []
        name = flow.neighbour.text
        if len(flows) > 1:
            name += f" (flow {flow.number} {flow.way})"
        problems += [f"neighbour {name}: {sentence}" for sentence in wrong]
    return tuple(found), tuple(problems)


def _sort(
    captures: tuple[Capture, Capture],
    seen: Mapping[int, _Seen],
    addresses: tuple[bytes, bytes],
) -> list[Packet]:
    """Sort packets by the flow that they are of; return the others."""
    strangers = []
    here, there = captures
    for capture, sides in (
        (here, ("out", "back")),
        (there, ("arrived", "left")),
    ):
        ways = {addresses: sides[0], addresses[::-1]: sides[1]}
        for packet in capture.packets:
            side = ways.get((packet.source, packet.target))
            flow = seen.get(packet.source_port)
            if side is None or flow is None or packet.source_port != packet.target_port:
                strangers.append(packet)
            else:
                getattr(flow, side).append(packet)
    return strangers


def _began(flow: PlannedFlow, at_ns: int, window: LoadWindow) -> Iterator[str]:
    asked, began = flow.neighbour.from_s, window.since_s(at_ns)
    if began - asked > SLACK_S or (window.exact and asked - began > SLACK_S):
        yield f"it began at {began:.3f} s, asked was {asked:g} s"


def _read_connection(
    flow: PlannedFlow, seen: _Seen, told: ToldConnection, window: LoadWindow
) -> tuple[NeighbourFlow | None, list[str]]:
    syn = next((packet for packet in seen.out if packet.opens), None)
    if syn is None:
        return None, ["it never began"]
    wrong = [*_began(flow, syn.at_ns, window)]
    until_ns = window.end_of(flow.neighbour)
    wrong += _ended(flow, (*seen.out, *(seen.left if flow.way == "down" else ())), window)
    data = [p for p in (seen.out if flow.way == "up" else seen.back) if p.payload_bytes]
    if not data:
        return None, [*wrong, "it sent nothing"]
    if told.algorithm != flow.neighbour.algorithm:
        has = told.algorithm or "no connection at its end"
        wrong.append(f"its congestion control is {has}, asked was {flow.neighbour.algorithm}")
    elif (idle_s := (until_ns - data[0].at_ns) / 1e9 - told.busy_s) > IDLE_S:
        wrong.append(f"it had nothing to send for {idle_s:.3f} s")
    moved = _acknowledged(seen, window) if flow.way == "up" else _received(data, window)
    return NeighbourFlow(
        *(flow.neighbour.text, flow.number, flow.way, window.since_s(syn.at_ns)),
        _kbit(moved, window),
        retransmits=told.retransmits,
    ), wrong


def _ended(flow: PlannedFlow, sent: Iterable[Packet], window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if an end closed before its time, or a sender not at it."""
    ended_ns = min((p.at_ns for p in sent if p.flags & (FIN | RST)), default=None)
    until_ns = window.end_of(flow.neighbour)
    early_ns = until_ns - (window.end_ns if ended_ns is None else ended_ns)
    late_ns = -early_ns if until_ns < window.end_ns else 0
    if max(early_ns, late_ns) > SLACK_S * 1e9:
        ended = "never" if ended_ns is None else f"at {window.since_s(ended_ns):.3f} s"
        yield f"it ended {ended}, asked was {window.since_s(until_ns):.3f} s"


def _kbit(payload_bytes: int, window: LoadWindow) -> float:
    return payload_bytes * 8e6 / max(1, window.end_ns - window.start_ns)


def _acknowledged(seen: _Seen, window: LoadWindow) -> int:
    """How many bytes the remote end acknowledged during the load."""
    first = next(p for p in seen.out if p.opens).seq
    reached, before = 0, 0
    for packet in seen.back:
        if packet.at_ns > window.end_ns:
            break
        if not packet.flags & RST:
            reached = max(reached, behind(packet.ack, first))
        if packet.at_ns < window.start_ns:
            before = reached
    return reached - before


def _received(data: list[Packet], window: LoadWindow) -> int:
    """How many bytes came to the neighbour during the load that were not there before."""
    numbers: set[int] = set()
    moved = 0
    for packet in data:
        if packet.seq not in numbers:
            numbers.add(packet.seq)
            if window.start_ns <= packet.at_ns <= window.end_ns:
                moved += packet.payload_bytes
    return moved


def _read_datagrams(
    flow: PlannedFlow, seen: _Seen, window: LoadWindow
) -> tuple[NeighbourFlow | None, list[str]]:
    sent, arrived = (seen.out, seen.arrived) if flow.way == "up" else (seen.left, seen.back)
    if not sent:
        return None, ["it never began"]
    wrong = [*_began(flow, sent[0].at_ns, window), *_paced(flow, sent, window)]
    came_ns: dict[int, int] = {}
    for packet in arrived:
        came_ns.setdefault(_number(packet), packet.at_ns)
    during = [p for p in sent if window.start_ns <= p.at_ns <= window.end_ns]
    delays = [(came_ns[_number(p)] - p.at_ns) / 1e6 for p in during if _number(p) in came_ns]
    ordered = sorted(delays)
    lost = len(during) - len(delays)
    payload = sum(
        packet.payload_bytes for packet in arrived
        if window.start_ns <= packet.at_ns <= window.end_ns
    )  # fmt: skip
    return NeighbourFlow(
        *(flow.neighbour.text, flow.number, flow.way, window.since_s(sent[0].at_ns)),
        _kbit(payload, window),
        sent=len(during),
        lost=lost,
        delay_p50_ms=_at_share(ordered, 0.5),
        delay_p95_ms=_at_share(ordered, 0.95),
        delay_max_ms=ordered[-1] if ordered else None,
        jitter_ms=fmean(abs(b - a) for a, b in pairwise(delays)) if len(delays) > 1 else None,
    ), wrong


def _paced(flow: PlannedFlow, sent: list[Packet], window: LoadWindow) -> Iterator[str]:
    """Yield a sentence if datagrams were not sent one after the other, each at its time."""
    neighbour = flow.neighbour
    others = sorted({p.ip_bytes for p in sent} - {neighbour.packet_bytes})
    if others:
        yield f"it sent packets of {others[0]} bytes, asked was {neighbour.packet_bytes}"
    began_ns = sent[0].at_ns
    beside = [
        number for number, packet in enumerate(sent)
        if _number(packet) != number
        or abs(packet.at_ns - began_ns - number * neighbour.gap_ns) > SLACK_S * 1e9
    ]  # fmt: skip
    if beside:
        yield (
            f"{len(beside)} of {len(sent)} packets were not sent at their times, one each "
            f"{neighbour.gap_ns / 1e6:g} ms"
        )
    missing_ns = window.end_of(neighbour) - sent[-1].at_ns - neighbour.gap_ns
    if missing_ns > SLACK_S * 1e9:
        yield f"it ended {missing_ns / 1e9:.3f} s too soon"


def _number(packet: Packet) -> int:
    """Return which datagram of its flow a packet is, from 0."""
    return int.from_bytes(packet.payload[_STAMP], "big") // CALL_STAMPS


def _at_share(ordered: list[float], share: float) -> float | None:
    """Return the smallest value that this share of the values does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]
