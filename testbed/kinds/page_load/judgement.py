"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import inet_aton

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.lab.beside import NEIGHBOUR_ADDRESS, REMOTE_ADDRESS
from testbed.lab.link.protocol import WAYS
from testbed.lab.topology import CLIENT_ENDS, CLIENT_MAC
from testbed.model import (
    CAPTURE_FILE,
    NEIGHBOUR_FILE,
    REMOTE_FILE,
    SERVER_CAPTURE_FILE,
    Condition,
    NeighbourFlow,
    PageLoad,
    Proof,
    ServedConnection,
    Trial,
    in_real_time,
)
from testbed.model.command import CLIENT as COMMAND
from testbed.model.impairments import fastest, is_drawn, is_lossy, without_loss
from testbed.model.trace import traced
from testbed.model.traffic import ToldConnection, parse_traffic
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.damage import check_damage, split_damaged
from testbed.wire.ecn import check_ecn, count_marks, read_marks
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import Flows, read_flows
from testbed.wire.ip_version import check_ip, describe_choice
from testbed.wire.line import check_line
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.lookups import check_lookups
from testbed.wire.neighbours import LoadWindow, merge_arrivals, read_neighbours
from testbed.wire.observed_knobs import check_conduct
from testbed.wire.openings import check_openings
from testbed.wire.packets import Capture, Packet, read_capture
from testbed.wire.proof import prove as prove_flows
from testbed.wire.queueing import check_queueing, describe_queueing, read_transits
from testbed.wire.reuse import check_reuse
from testbed.wire.service import check_service
from testbed.wire.waits import read_waits

NEIGHBOUR = inet_aton(NEIGHBOUR_ADDRESS)
GONE = ("dropped", "lost", "corrupted")
"""What the link counts of packets that did not come through as they were sent."""


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
    pcaps, condition = (
        (out / CAPTURE_FILE, out / SERVER_CAPTURE_FILE),
        trial.condition_as(Condition),
    )
    complete = all(pcap.exists() for pcap in pcaps)
    if observed.counters is None or observed.replay is None or not complete:
        return None
    (capture, at_server), link = map(read_capture, pcaps), condition.link
    traffic = observed.lab.traffic if observed.lab is not None else {}
    damaged: tuple[Packet, ...] = ()
    if link.corrupt_pct:
        capture, damaged = split_damaged(capture, CLIENT_ENDS, CLIENT_MAC)
    flows = read_flows(capture, CLIENT_ENDS)
    # The client's kernel counts segments before it looks at what is in them.
    flows = replace(flows, down=flows.down + sum(1 for p in damaged if p.protocol == "TCP"))
    company = _read_company(condition, observed, capture, flows, out)
    shared = company is not None
    if company is not None:
        flows = replace(flows, arrivals=company.arrivals)
    lost = sum(traffic.get(f"{way}.{how}", 0) for way in WAYS for how in GONE)
    broken = link.ip == "dual-broken"
    proof = prove_flows(flows, observed.counters, condition.tcp, silent=broken, lost=lost)
    whole = not any(traffic.get(f"down.{how}") for how in GONE)
    steady = not (link.changes or is_drawn(without_loss(link)))
    largest, of_flights = check_first_flights(
        flows, condition.tcp.initcwnd_segments, fastest(link), whole=whole and steady
    )
    marks, resent = read_marks(flows), proof.server_retransmits or 0
    transits = read_transits(capture, at_server, CLIENT_ENDS)
    exact = not in_real_time(trial.kernel)
    served = whole and steady and not (shared and traffic.get("up.dropped"))
    seen = (
        *check_whole(capture),
        *check_ecn(flows, marks, condition.tcp, link, traffic, resent, shared=shared),
        *check_both_ways(flows, observed.counters["client"]),
        # Of segments that came in another order nobody can tell which an acknowledgement let go.
        *(() if link.reorder_pct else of_flights),
        *check_openings(flows),
        *check_ip(capture, flows, link.ip, whole=not (lost or link.changes)),
        *check_damage(damaged, traffic.get("down.corrupted", 0)),
        *(_exact(capture, flows, condition, observed, company, served=served) if exact else ()),
        *check_queueing(
            *(transits, traffic, link, observed.running_traces(link)),
            exact=exact and steady,
            shared=shared,
        ),
        *check_conduct(capture, condition, observed.replay),
        *check_lookups(capture, condition.dns, observed.hosts),
        *check_reuse(flows, observed.connections, condition.tcp.requests_per_connection),
        *(() if company is None else company.problems),
    )
    told = () if observed.load is None else _check_told(capture, flows, observed, exact=exact)
    problems = (*proof.problems, *seen, *told, *observed.problems)
    return replace(
        proof,
        first_flight_segments=largest,
        problems=problems,
        waits=read_waits(capture, flows, observed.counters),
        ecn=count_marks(marks),
        queueing=describe_queueing(transits, link) if steady else {},
        neighbours=() if company is None else company.flows,
        ip=describe_choice(flows, link.ip, observed.hosts),
    )


def _check_told(
    capture: Capture, flows: Flows, observed: LoadObservation, *, exact: bool
) -> Iterator[str]:
    """Yield what the client told of its load, and packets and the server's log contradict."""
    load, replay = observed.load, observed.replay
    assert load is not None and replay is not None  # noqa: S101 - who asks has both
    yield from check_load_time(
        capture, flows, CLIENT_ENDS, load, observed.connections, real_time=not exact
    )
    yield from check_counts(load, replay)


def _read_company(
    condition: Condition, observed: LoadObservation, capture: Capture, flows: Flows, out: Path
) -> _Company | None:
    """Return what neighbours did; ``None``: nobody asked for any, or there was no load."""
    neighbours = parse_traffic(condition.traffic)
    began = next((p.at_ns for p in capture.packets if p.source in CLIENT_ENDS), None)
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
    observed: LoadObservation,
    company: _Company | None,
    *,
    served: bool,
) -> Iterator[str]:
    """Yield what packets show where nothing but the lab and the load takes time.

    ``served``: no packet was dropped on its way down, and all had the same delay, nor, where
    neighbours fill the queue, dropped on its way up; a request that waited for one that was says
    nothing of the server.
    """
    lab = observed.lab
    link, steps = condition.link, () if lab is None else lab.steps
    shared = company is not None
    yield from check_line(flows, link, steps, observed.running_traces(link), shared=shared)
    copies = 0 if lab is None else lab.traffic.get("down.duplicated", 0)
    yield from check_strangers(capture, flows, copies)
    if served and link.is_plain and not is_lossy(link) and not traced(link):
        most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
        packets = capture.packets if company is None else company.packets
        yield from check_service(packets, flows, (*CLIENT_ENDS, NEIGHBOUR), link, most_ms)
