"""Neighbours of a page load by captures of their own: that they did as asked, and what came of it.

The captures at the neighbour and at its remote end have all their packets.  When a flow begins,
whether it goes on, how much of it got through and with which delay is seen there; only the
congestion control of a connection, and whether it always had data to send, its kernel has to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.capture.damage import split_damaged
from testbed.capture.packets import Capture, Packet, read_capture
from testbed.capture.tcpdump import SNAP_BYTES
from testbed.capture.transits import Crossings, read_crossings
from testbed.model import NEIGHBOUR_FILE, REMOTE_FILE, LinkSpec, NeighbourFlow
from testbed.model.traffic import Neighbour, PlannedFlow, ToldConnection, list_flows
from testbed.proof.neighbours.conduct import check_class
from testbed.proof.neighbours.datagrams import read_datagrams
from testbed.proof.neighbours.fetches import read_fetches
from testbed.proof.neighbours.flow import LoadWindow, SeenFlow
from testbed.proof.neighbours.streams import read_connection


@dataclass(frozen=True, slots=True)
class NeighbourAccount:
    """What neighbours of a load did: their flows, what is wrong with them, their own packets.

    ``apart`` has those of a second page at the neighbour, ``damaged`` are those that came down so,
    and ``crossings`` has all of them at both ends.
    """

    flows: tuple[NeighbourFlow, ...]
    problems: tuple[str, ...]
    packets: tuple[Packet, ...]
    address: bytes
    apart: Capture
    damaged: tuple[Packet, ...]
    crossings: Crossings

    def with_arrivals(self, others: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return all that came down the line (``Flows.arrivals``), ``others`` included."""
        own = ((p.at_ns, p.ip_bytes) for p in self.packets if p.target == self.address)
        return tuple(sorted((*others, *own)))


def read_account(
    out: Path,
    neighbours: tuple[Neighbour, ...],
    seed: int,
    told: Iterable[ToldConnection],
    window: LoadWindow,
    link: LinkSpec,
    addresses: tuple[bytes, bytes],
    prefix: bytes = b"",
    macs: Sequence[bytes] = (),
) -> NeighbourAccount:
    """Return what each flow came to, and a sentence for each thing that is not as asked.

    Args:
        out: the folder with their captures.
        neighbours: what was asked.
        seed: by which they drew.
        told: by the kernel, of connections.
        window: of the load.
        link: that they shared.
        addresses: of the neighbour and of its remote end.
        prefix: what the addresses of a second page's servers begin with, if there is one.
        macs: of the devices of both, where the link damages packets.

    Raises:
        OSError, ValueError: a capture cannot be read.
    """
    here, there = (read_capture(out / name) for name in (NEIGHBOUR_FILE, REMOTE_FILE))
    damaged: tuple[Packet, ...] = ()
    if macs:
        served = {p.source for p in there.packets if prefix and p.source.startswith(prefix)}
        there, _ = split_damaged(there, {addresses[1], *served}, macs[1])
        here, damaged = split_damaged(here, addresses[:1], macs[0])
    flows = {flow.port: flow for flow in list_flows(neighbours)}
    seen = {port: SeenFlow() for port in flows}
    strangers, apart = _sort((here, there), flows, seen, addresses, prefix)
    found, problems = [], []
    if strangers:
        first = strangers[0]
        problems.append(
            f"{len(strangers)} packets at the neighbours are of none of them, the first of them "
            f"{first.protocol} from {first.sender} to {first.receiver}"
        )
    told = tuple(told)
    for name, group in _group(neighbours, flows):
        said = [each for each in told if each.port in {flow.port for flow in group}]
        users = [(flow, seen[flow.port]) for flow in group]
        measured, wrong = _read_flow(users, said, window, seed, link)
        found += [measured] if measured is not None else []
        problems += [f"neighbour {name}: {sentence}" for sentence in wrong]
    of_page = replace(here, packets=apart)
    crossings = read_crossings(here, there, addresses[:1], SNAP_BYTES)
    return NeighbourAccount(
        *(tuple(found), tuple(problems), here.packets, addresses[0]), of_page, damaged, crossings
    )


def _group(
    neighbours: Iterable[Neighbour], flows: Mapping[int, PlannedFlow]
) -> Iterator[tuple[str, list[PlannedFlow]]]:
    """Yield the flows that are judged together, all of a neighbour that fetches, and their name."""
    for neighbour in neighbours:
        own = [flow for flow in flows.values() if flow.neighbour is neighbour]
        if neighbour.asks:
            yield neighbour.text, own
            continue
        for flow in own:
            number = f" (flow {flow.number} {flow.way})" if len(flows) > 1 else ""
            yield neighbour.text + number, [flow]


def _read_flow(
    users: Sequence[tuple[PlannedFlow, SeenFlow]],
    told: Sequence[ToldConnection],
    window: LoadWindow,
    seed: int,
    link: LinkSpec,
) -> tuple[NeighbourFlow | None, list[str]]:
    flow, seen = users[0]
    measured: NeighbourFlow | None
    if flow.neighbour.asks:
        measured, wrong = read_fetches(users, told, window, seed, link)
    elif flow.neighbour.algorithm:
        measured, wrong = read_connection(flow, seen, told, window, link)
    else:
        measured, wrong = read_datagrams(flow, seen, window)
    return measured, [
        *wrong,
        *(said for _, each in users for said in check_class(flow.neighbour, each)),
    ]


def _sort(
    captures: tuple[Capture, Capture],
    flows: Mapping[int, PlannedFlow],
    seen: Mapping[int, SeenFlow],
    addresses: tuple[bytes, bytes],
    prefix: bytes,
) -> tuple[list[Packet], tuple[Packet, ...]]:
    """Sort packets by the flow that they are of.

    Return the others, and what the neighbour's end has of a second page.
    """
    strangers: list[Packet] = []
    apart: list[Packet] = []
    here, there = captures
    for capture, sides in ((here, ("out", "back")), (there, ("arrived", "left"))):
        ways = {addresses: sides[0], addresses[::-1]: sides[1]}
        for packet in capture.packets:
            ends = packet.source, packet.target
            if prefix and any(end.startswith(prefix) for end in ends):
                apart += [packet] if capture is here else []
                continue
            side = ways.get(ends)
            ports = packet.source_port, packet.target_port
            near, far = ports if packet.source == addresses[0] else ports[::-1]
            flow = flows.get(far)
            if side is None or flow is None or (near != far and flow.neighbour.kind != "web"):
                strangers.append(packet)
            else:
                getattr(seen[far], side).append(packet)
    return strangers, tuple(apart)
