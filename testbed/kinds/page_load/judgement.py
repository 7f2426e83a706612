"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.kinds.page_load.measurement import SecondLoad
from testbed.kinds.page_load.second_judgement import judge_second
from testbed.lab.link.protocol import WAYS
from testbed.lab.neighbour_hosts import ADDRESSES, MACS, REMOTE_PREFIX
from testbed.lab.topology import CLIENT_ENDS, CLIENT_MAC
from testbed.model import (
    CAPTURE_FILE,
    KEYS_FILE,
    SERVER_CAPTURE_FILE,
    Condition,
    PageLoad,
    Proof,
    Replay,
    ServedConnection,
    Trial,
    VisitProof,
    in_real_time,
)
from testbed.model.command import CLIENT as COMMAND
from testbed.model.impairments import fastest, is_drawn, is_lossy, without_loss
from testbed.model.opening import opening_of
from testbed.model.trace import traced
from testbed.model.traffic import ToldConnection, parse_traffic, second_page
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.damage import check_damage, split_damaged
from testbed.wire.ecn import Marks, check_ecn, count_marks, read_marks
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import Flows, first_packet_ns, read_flows
from testbed.wire.handshake_checks import check_handshakes
from testbed.wire.handshakes import Handshake, read_handshakes
from testbed.wire.ip_version import check_ip, describe_choice
from testbed.wire.line import SLACK_US, check_line
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.lookups import check_lookups
from testbed.wire.neighbour_flow import LoadWindow
from testbed.wire.neighbours import Company, read_company
from testbed.wire.observed_knobs import check_conduct
from testbed.wire.openings import check_openings
from testbed.wire.packets import Capture, Packet, read_capture
from testbed.wire.path_mtu import check_path_mtu, count_first_flights
from testbed.wire.proof import prove as prove_flows
from testbed.wire.queueing import Transits, check_queueing, describe_queueing, read_transits
from testbed.wire.quic import QuicConnection, read_quic
from testbed.wire.quic_checks import check_quic
from testbed.wire.quic_keys import read_secrets
from testbed.wire.reuse import check_reuse
from testbed.wire.service import check_service, quic_exchanges
from testbed.wire.visit_proof import prove_visits
from testbed.wire.visits import VisitWindow, check_visits, split_visits
from testbed.wire.waits import read_waits

GONE = ("dropped", "lost", "corrupted", "too_long")
"""What the link counts of packets that did not come through as they were sent."""


@dataclass(frozen=True, slots=True)
class LoadObservation(Observation):
    """What a page load leaves.

    ``hosts`` are the page's by their addresses in the lab, ``connections`` the server's account,
    ``neighbours`` what the kernel told of theirs, ``load_ns`` when these expected the load, and
    ``second`` what one of them saw that loaded the page, too.
    """

    load: PageLoad | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()
    neighbours: tuple[ToldConnection, ...] = ()
    load_ns: int = 0
    second: SecondLoad | None = None

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
    load = None if observed.replay is None else observed.load
    if load is not None:  # the requests of earlier visits are in their HAR files
        earlier = tuple(replace(visit, requests=()) for visit in load.earlier)
        load = replace(load, earlier=earlier)
    return Judgement(load, _prove(trial, observed, out))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of a load before it is judged.

    ``capture`` is the client's without the packets that came ``damaged``, and ``at_server`` the
    server's; ``quic`` are its connections by that, and ``handshakes`` those of TLS, where there are
    secrets to read them by; the arrivals of ``flows`` are all that came down the line, to
    neighbours too. ``counted`` is what the link counted, ``marks`` are those of congestion,
    ``transits`` the packets that both ends have, and ``visits`` the windows of a load's.

    ``whole``: no packet was dropped on its way down.  ``steady``: all had the same delay.
    ``exact``: nothing but the lab and the load takes time.
    """

    condition: Condition
    observed: LoadObservation
    capture: Capture
    at_server: Capture
    damaged: tuple[Packet, ...]
    flows: Flows
    company: Company | None
    counted: Mapping[str, int]
    marks: list[Marks]
    transits: Transits
    quic: tuple[QuicConnection, ...]
    handshakes: tuple[Handshake, ...]
    visits: tuple[VisitWindow, ...]
    whole: bool
    steady: bool
    exact: bool

    @property
    def shared(self) -> bool:
        """Whether neighbours used the line."""
        return self.company is not None

    @property
    def served(self) -> bool:
        """Whether a request's wait is the server's: what was dropped is waited for, too."""
        dropped_up = self.shared and self.counted.get("up.dropped")
        too_long = self.counted.get("up.too_long")
        return self.whole and self.steady and not (dropped_up or too_long)


def _see(trial: Trial, observed: LoadObservation, out: Path) -> _Seen:
    condition = trial.condition_as(Condition)
    capture, at_server = (read_capture(out / name) for name in (CAPTURE_FILE, SERVER_CAPTURE_FILE))
    link = condition.link
    damaged: tuple[Packet, ...] = ()
    if link.corrupt_pct:
        capture, damaged = split_damaged(capture, CLIENT_ENDS, CLIENT_MAC)
    flows = read_flows(capture, CLIENT_ENDS)
    # The client's kernel counts segments before it looks at what is in them.
    flows = replace(flows, down=flows.down + sum(1 for p in damaged if p.protocol == "TCP"))
    window = _window(capture, observed, of_command=condition.client == COMMAND)
    company = None if window is None else _read_company(trial, observed, out, window)
    if company is not None:
        flows = replace(flows, arrivals=company.with_arrivals(flows.arrivals))
        damaged = (*damaged, *company.damaged)
    counted = observed.lab.traffic if observed.lab is not None else {}
    secrets = read_secrets(out / KEYS_FILE) if trial.opening.keys else {}
    quic = read_quic(capture, CLIENT_ENDS, secrets)
    return _Seen(
        *(condition, observed, capture, at_server, damaged, flows, company, counted),
        marks=read_marks(flows),
        transits=read_transits(capture, at_server, CLIENT_ENDS),
        quic=quic,
        handshakes=read_handshakes(flows, quic, secrets) if trial.opening.keys else (),
        visits=() if observed.load is None else split_visits(observed.load),
        whole=not any(counted.get(f"down.{how}") for how in GONE),
        steady=not (link.changes or is_drawn(without_loss(link))),
        exact=not in_real_time(trial.kernel),
    )


def _read_company(
    trial: Trial, observed: LoadObservation, out: Path, window: LoadWindow
) -> Company | None:
    """Return what neighbours did; ``None``: there were to be none."""
    neighbours = parse_traffic(trial.condition_as(Condition).traffic)
    if not neighbours:
        return None
    page = second_page(neighbours)
    company = read_company(
        *(out, neighbours, trial.seed, observed.neighbours, window, ADDRESSES),
        REMOTE_PREFIX if page else b"",
        MACS if trial.linked.link.corrupt_pct else (),
    )
    if page is None:
        return company
    if observed.second is None:
        told = f"neighbour {page.text}: it has not loaded the page"
        return replace(company, problems=(*company.problems, told))
    flow, wrong = judge_second(page, observed.second, company.apart, window)
    problems = (*company.problems, *(f"neighbour {page.text}: {each}" for each in wrong))
    return replace(company, flows=(*company.flows, flow), problems=problems)


def _window(capture: Capture, observed: LoadObservation, *, of_command: bool) -> LoadWindow | None:
    """Return from when to when the page was loaded; ``None``: it was not."""
    began = first_packet_ns(capture, CLIENT_ENDS)
    if observed.load is None or began is None:
        return None
    zero_ns = observed.load_ns if of_command else began
    return LoadWindow(began, began + round(observed.load.plt_ms * 1e6), zero_ns)


def _prove(trial: Trial, observed: LoadObservation, out: Path) -> Proof | None:
    complete = all((out / name).exists() for name in (CAPTURE_FILE, SERVER_CAPTURE_FILE))
    if observed.counters is None or observed.replay is None or not complete:
        return None
    seen = _see(trial, observed, out)
    flows, condition, company = seen.flows, seen.condition, seen.company
    lost = sum(seen.counted.get(f"{way}.{how}", 0) for way in WAYS for how in GONE)
    broken = condition.link.ip == "dual-broken"
    proof = prove_flows(
        *(flows, observed.counters, condition.tcp), silent=broken, lost=lost, quic=bool(seen.quic)
    )
    largest, of_flights = check_first_flights(
        *(flows, condition.tcp.initcwnd_segments, fastest(condition.link)),
        count_first_flights(seen.at_server, condition.link),
        whole=seen.whole and seen.steady,
    )
    # Of segments that came in another order nobody can tell which an acknowledgement let go.
    wrong = () if condition.link.reorder_pct else of_flights
    checks = (
        *check_ip(
            seen.capture, flows, condition.link.ip, whole=not (lost or condition.link.changes)
        ),
        *_check_packets(seen, observed.counters["client"], proof.server_retransmits or 0),
        *(_check_times(seen) if seen.exact else ()),
        *_check_conduct(seen, observed.replay),
    )
    problems = (*proof.problems, *wrong, *checks, *observed.problems)
    return replace(
        proof,
        first_flight_segments=largest,
        problems=problems,
        waits=read_waits(seen.capture, flows, observed.counters),
        ecn=count_marks(seen.marks),
        queueing=describe_queueing(seen.transits, condition.link) if seen.steady else {},
        neighbours=() if company is None else company.flows,
        ip=describe_choice(flows, condition.link.ip, observed.hosts),
        visits=tuple(_prove_visits(seen)),
    )


def _prove_visits(seen: _Seen) -> Iterator[VisitProof]:
    if not seen.handshakes:
        return
    yield from prove_visits(
        *(seen.visits, seen.capture, CLIENT_ENDS, seen.handshakes, seen.quic),
        *(seen.observed.connections, seen.observed.hosts, seen.condition.link.rtt_ms),
    )


def _check_packets(seen: _Seen, counters: Mapping[str, int], resent: int) -> Iterator[str]:
    """Yield what is wrong with the packets, whenever they came.

    ``counters`` are the client's, and ``resent`` is what the server sent again.
    """
    capture, flows, condition = seen.capture, seen.flows, seen.condition
    counted, link = seen.counted, condition.link
    yield from check_whole(capture)
    yield from check_ecn(
        flows, seen.marks, condition.tcp, link, counted, resent, shared=seen.shared
    )
    yield from check_both_ways(flows, counters)
    yield from check_openings(flows, link)
    yield from check_path_mtu({"up": capture, "down": seen.at_server}, seen.transits, link, counted)
    yield from check_damage(seen.damaged, counted.get("down.corrupted", 0))
    yield from check_queueing(
        *(seen.transits, counted, link, seen.observed.running_traces(link)),
        exact=seen.exact and seen.steady,
        shared=seen.shared,
        visits=() if condition.visits == 1 else seen.visits,
    )
    if seen.company is not None:
        yield from seen.company.problems


def _check_times(seen: _Seen) -> Iterator[str]:
    """Yield what packets show where nothing but the lab and the load takes time."""
    condition, lab, flows = seen.condition, seen.observed.lab, seen.flows
    link, steps = condition.link, () if lab is None else lab.steps
    traces = seen.observed.running_traces(link)
    yield from check_line(flows, link, steps, traces, shared=seen.shared)
    copies = seen.counted.get("down.duplicated", 0)
    narrow = link.path_mtu_bytes is not None
    yield from check_strangers(seen.capture, flows, copies, narrow=narrow, quic=bool(seen.quic))
    if seen.served and link.is_plain and not is_lossy(link) and not traced(link):
        most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
        packets = seen.capture.packets
        if seen.company is not None:
            packets = seen.company.with_packets(packets)
        yield from check_service(
            *(packets, flows, (*CLIENT_ENDS, ADDRESSES[0]), link, most_ms),
            quic_exchanges(seen.quic, seen.capture.packets),
        )


def _check_conduct(seen: _Seen, replay: Replay) -> Iterator[str]:
    """Yield what packets and the server's log contradict, of what was asked and was told."""
    capture, flows, condition, observed = seen.capture, seen.flows, seen.condition, seen.observed
    yield from check_conduct(capture, condition, replay)
    yield from check_lookups(capture, condition.dns, observed.hosts)
    client = {} if observed.counters is None else observed.counters["client"]
    yield from check_quic(
        *(condition, capture, CLIENT_ENDS, flows, seen.quic, observed.connections, client)
    )
    yield from check_reuse(flows, observed.connections, condition.tcp.requests_per_connection)
    if observed.load is None:
        return
    if opening_of(condition).keys:
        yield from check_handshakes(
            *(condition, seen.visits, seen.handshakes, observed.connections, replay.protocols),
            observed.hosts,
        )
    real_time = not seen.exact
    yield from check_visits(seen.visits, condition, capture, CLIENT_ENDS, real_time=real_time)
    for visit in seen.visits:
        problems = check_load_time(
            *(capture, flows, CLIENT_ENDS, visit, observed.connections, seen.quic, seen.handshakes),
            real_time=real_time,
            held_ms=_held_ms(seen),
        )
        yield from map(visit.say, problems)
    yield from check_counts(observed.load, replay)


def _held_ms(seen: _Seen) -> float:
    """For how long the client's first packet may have waited for the last hop."""
    hop = seen.observed.running_traces(seen.condition.link).get("hop_up")
    first = first_packet_ns(seen.capture, CLIENT_ENDS)
    if hop is None or first is None:
        return 0.0
    return (first - hop.before_ns(first - round(SLACK_US * 1000))) / 1e6
