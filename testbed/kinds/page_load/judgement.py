"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import inet_aton

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.lab.beside import NEIGHBOUR_ADDRESS, REMOTE_ADDRESS
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import (
    CAPTURE_FILE,
    FIFO,
    NEIGHBOUR_FILE,
    REMOTE_FILE,
    Condition,
    NeighbourFlow,
    PageLoad,
    Proof,
    ServedConnection,
    Trial,
    in_real_time,
)
from testbed.model.command import CLIENT as COMMAND
from testbed.model.traffic import ToldConnection, parse_traffic
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import Flows, read_flows
from testbed.wire.line import check_line
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.lookups import check_lookups
from testbed.wire.neighbours import LoadWindow, merge_arrivals, read_neighbours
from testbed.wire.observed_knobs import check_conduct
from testbed.wire.openings import check_openings
from testbed.wire.packets import Capture, Packet, read_capture
from testbed.wire.proof import prove as prove_flows
from testbed.wire.reuse import check_reuse
from testbed.wire.service import check_service
from testbed.wire.waits import read_waits

CLIENT, NEIGHBOUR = inet_aton(CLIENT_ADDRESS), inet_aton(NEIGHBOUR_ADDRESS)


@dataclass(frozen=True, slots=True)
class LoadObservation(Observation):
    """What a page load leaves.

    ``hosts`` are the page's by their addresses in the lab, ``connections`` the server's account,
    ``neighbours`` what the kernel told of theirs.
    """

    load: PageLoad | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()
    neighbours: tuple[ToldConnection, ...] = ()

    @property
    def measured(self) -> PageLoad | None:
        """The load as the client observed it."""
        return self.load


OBSERVATION = LoadObservation


def judge(trial: Trial, observed: LoadObservation, out: Path) -> Judgement:
    """Return the load, if its server's log was read as well, and what the capture proves.

    Raises:
        OSError, ValueError, LookupError: the capture cannot be read.
    """
    measured = None if observed.replay is None else observed.load
    return Judgement(measured, _prove(trial, observed, out))


@dataclass(frozen=True, slots=True)
class _Company:
    """What neighbours did: their flows, what is wrong with them, and all packets on their side.

    ``arrivals`` are those of ``Flows``, of the client and of the neighbour.
    """

    flows: tuple[NeighbourFlow, ...]
    problems: tuple[str, ...]
    packets: tuple[Packet, ...]
    arrivals: tuple[tuple[int, int], ...]


def _prove(trial: Trial, observed: LoadObservation, out: Path) -> Proof | None:
    pcap, condition = out / CAPTURE_FILE, trial.condition_as(Condition)
    if observed.counters is None or observed.replay is None or not pcap.exists():
        return None
    capture = read_capture(pcap)
    flows = read_flows(capture, CLIENT)
    company = _read_company(condition, observed, capture, flows, out)
    if company is not None:
        flows = replace(flows, arrivals=company.arrivals)
    traffic = observed.lab.traffic if observed.lab is not None else {}
    lost = sum(traffic.get(f"{way}.lost", 0) for way in ("up", "down"))
    if company is not None:  # whose packets fill the queues
        lost += sum(traffic.get(f"{way}.dropped", 0) for way in ("up", "down"))
    proof = prove_flows(flows, observed.counters, condition.tcp, lost=lost)
    whole = not traffic.get("down.dropped") and not traffic.get("down.lost")
    largest, of_flights = check_first_flights(
        flows,
        condition.tcp.initcwnd_segments,
        condition.link,
        whole=whole,
    )
    served = whole and not (company is not None and traffic.get("up.dropped"))
    exact = () if in_real_time(trial.kernel) else _exact(
        capture, flows, condition, company, served=served
    )  # fmt: skip
    seen = (
        *check_whole(capture),
        *check_both_ways(flows, observed.counters["client"]),
        *of_flights,
        *check_openings(flows),
        *exact,
        *check_conduct(capture, condition, observed.replay),
        *check_lookups(capture, condition.dns, observed.hosts),
        *check_reuse(flows, observed.connections, condition.tcp.requests_per_connection),
        *(() if company is None else company.problems),
    )
    told = () if observed.load is None else (
        *check_load_time(
            capture, flows, CLIENT, observed.load, observed.connections,
            real_time=in_real_time(trial.kernel),
        ),
        *check_counts(observed.load, observed.replay),
    )  # fmt: skip
    problems = (*proof.problems, *seen, *told, *observed.problems)
    waits = read_waits(capture, flows, observed.counters)
    return replace(
        proof, first_flight_segments=largest, problems=problems, waits=waits,
        neighbours=() if company is None else company.flows,
    )  # fmt: skip


def _read_company(
    condition: Condition, observed: LoadObservation, capture: Capture, flows: Flows, out: Path
) -> _Company | None:
    """Return what neighbours did; ``None``: nobody asked for any, or there was no load."""
    neighbours = parse_traffic(condition.traffic)
    began = next((p.at_ns for p in capture.packets if p.source == CLIENT), None)
    if not neighbours or observed.load is None or began is None:
        return None
    here = read_capture(out / NEIGHBOUR_FILE)
    there = read_capture(out / REMOTE_FILE)
    window = LoadWindow(
        began, began + round(observed.load.plt_ms * 1e6), exact=condition.client != COMMAND
    )
    ends = (NEIGHBOUR, inet_aton(REMOTE_ADDRESS))
    found, problems = read_neighbours((here, there), neighbours, observed.neighbours, window, ends)
    packets = sorted((*capture.packets, *here.packets), key=lambda packet: packet.at_ns)
    return _Company(
        found, problems, tuple(packets), merge_arrivals(flows.arrivals, here, NEIGHBOUR)
    )


def _exact(
    capture: Capture,
    flows: Flows,
    condition: Condition,
    company: _Company | None,
    *,
    served: bool,
) -> Iterator[str]:
    """Yield what packets show where nothing but the lab and the load takes time.

    ``served``: no packet was dropped on its way down, nor, where neighbours fill the queue, on its
    way up; a request that waited for one that was says nothing of the server.
    """
    yield from check_line(flows, condition.link, shared=company is not None)
    yield from check_strangers(capture, flows)
    if served and condition.link.qdisc == FIFO and not condition.link.loss_pct:
        most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
        packets = capture.packets if company is None else company.packets
        yield from check_service(packets, flows, (CLIENT, NEIGHBOUR), condition.link, most_ms)
