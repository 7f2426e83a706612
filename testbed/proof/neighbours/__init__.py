"""Neighbours of a page load by captures of their own: that they did as asked, and what came of it.

The captures at the neighbour and at its remote end have all their packets.  When a flow begins,
whether it goes on, how much of it got through and with which delay is seen there; only the
congestion control of a connection, and whether it always had data to send, its kernel has to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.capture.damage import split_damaged
from testbed.capture.packets import Capture, Packet, read_capture
from testbed.capture.tcpdump import SNAP_BYTES
from testbed.capture.transits import Crossings, read_crossings
from testbed.lab.neighbour_hosts import ADDRESSES, MACS, REMOTE_PREFIX
from testbed.model import NEIGHBOUR_FILE, REMOTE_FILE, LinkSpec, NeighbourFlow
from testbed.model.traffic import Neighbour, PlannedFlow, ToldConnection, list_flows, second_page
from testbed.proof.neighbours.conduct import check_class
from testbed.proof.neighbours.datagrams import read_datagrams
from testbed.proof.neighbours.fetches import read_fetches
from testbed.proof.neighbours.flow import LoadWindow, SeenFlow
from testbed.proof.neighbours.streams import read_connection

_Flows = Mapping[int, tuple[PlannedFlow, SeenFlow]]
"""By the port of the remote end."""


@dataclass(frozen=True, slots=True)
class NeighbourAccount:
    """What neighbours of a load did: their flows, what is wrong with them, their own packets.

    ``apart`` has those of a second page at the neighbour, ``damaged`` are those that came down so,
    and ``crossings`` has all of them at both ends.
    """

    flows: tuple[NeighbourFlow, ...]
    problems: tuple[str, ...]
    packets: tuple[Packet, ...]
    apart: Capture
    damaged: tuple[Packet, ...]
    crossings: Crossings

    def with_arrivals(self, others: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return all that came down the line (``Flows.arrivals``), ``others`` included."""
        own = ((p.at_ns, p.ip_bytes) for p in self.packets if p.target == ADDRESSES[0])
        return tuple(sorted((*others, *own)))


def read_account(
    out: Path,
    neighbours: tuple[Neighbour, ...],
    seed: int,
    told: Iterable[ToldConnection],
    window: LoadWindow,
    link: LinkSpec,
) -> NeighbourAccount:
    """Return what each flow came to, and a sentence for each thing that is not as asked.

    Args:
        out: the folder with their captures.
        neighbours: what was asked.
        seed: by which they drew.
        told: by the kernel, of connections.
        window: of the load.
        link: that they shared.

    Raises:
        OSError, ValueError: a capture cannot be read.
    """
    here, there = (read_capture(out / name) for name in (NEIGHBOUR_FILE, REMOTE_FILE))
    damaged: tuple[Packet, ...] = ()
    second = second_page(neighbours) is not None
    if link.corrupt_pct:
        there, _ = split_damaged(there, MACS[1])
        here, damaged = split_damaged(here, MACS[0])
    flows = {flow.port: (flow, SeenFlow()) for flow in list_flows(neighbours)}
    strangers, apart = _sort(here, there, flows, second=second)
    problems = []
    if strangers:
        first = strangers[0]
        problems.append(
            f"{len(strangers)} packets at the neighbours are of none of them, the first of them "
            f"{first.protocol} from {first.sender} to {first.receiver}"
        )
    judged = list(_judge(neighbours, flows, tuple(told), window, seed, link))
    return NeighbourAccount(
        tuple(measured for measured, _ in judged if measured is not None),
        (*problems, *(sentence for _, wrong in judged for sentence in wrong)),
        here.packets,
        replace(here, packets=apart),
        damaged,
        read_crossings(here, there, ADDRESSES[:1], SNAP_BYTES),
    )


def _judge(
    neighbours: Iterable[Neighbour],
    flows: _Flows,
    told: tuple[ToldConnection, ...],
    window: LoadWindow,
    seed: int,
    link: LinkSpec,
) -> Iterator[tuple[NeighbourFlow | None, list[str]]]:
    """Yield what each flow came to, all together of a neighbour that fetches, and what is wrong."""
    for neighbour in neighbours:
        own = [each for each in flows.values() if each[0].neighbour is neighbour]
        for users in [own] if neighbour.asks else [[each] for each in own]:
            flow, seen = users[0]
            said = [each for each in told if each.port in {flow.port for flow, _ in users}]
            measured: NeighbourFlow | None
            if neighbour.asks:
                measured, wrong = read_fetches(users, said, window, seed, link)
            elif neighbour.algorithm:
                measured, wrong = read_connection(flow, seen, said, window, link)
            else:
                measured, wrong = read_datagrams(flow, seen, window)
            wrong += [words for _, each in users for words in check_class(neighbour, each)]
            name = neighbour.text
            if len(flows) > 1 and not neighbour.asks:
                name += f" (flow {flow.number} {flow.way})"
            yield measured, [f"neighbour {name}: {words}" for words in wrong]


def _sort(
    here: Capture, there: Capture, flows: _Flows, *, second: bool
) -> tuple[list[Packet], tuple[Packet, ...]]:
    """Sort packets by the flow that they are of.

    Return the others, and what the neighbour's end has of a second page.
    """
    strangers: list[Packet] = []
    apart: list[Packet] = []
    for capture, sides in ((here, ("out", "back")), (there, ("arrived", "left"))):
        ways = {ADDRESSES: sides[0], ADDRESSES[::-1]: sides[1]}
        for packet in capture.packets:
            ends = packet.source, packet.target
            if second and any(end.startswith(REMOTE_PREFIX) for end in ends):
                apart += [packet] if capture is here else []
                continue
            side = ways.get(ends)
            ports = packet.source_port, packet.target_port
            near, far = ports if packet.source == ADDRESSES[0] else ports[::-1]
            flow, seen = flows.get(far, (None, None))
            if not side or not flow or (near != far and flow.neighbour.kind != "web"):
                strangers.append(packet)
            else:
                getattr(seen, side).append(packet)
    return strangers, tuple(apart)
