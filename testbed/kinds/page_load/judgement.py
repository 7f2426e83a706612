"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import inet_aton

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import (
    CAPTURE_FILE,
    SERVER_CAPTURE_FILE,
    Condition,
    PageLoad,
    Proof,
    ServedConnection,
    Trial,
    in_real_time,
)
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import Flows, read_flows
from testbed.wire.line import check_line
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.lookups import check_lookups
from testbed.wire.observed_knobs import check_conduct
from testbed.wire.openings import check_openings
from testbed.wire.packets import Capture, read_capture
from testbed.wire.proof import prove as prove_flows
from testbed.wire.queueing import check_queueing, describe_queueing, read_transits
from testbed.wire.reuse import check_reuse
from testbed.wire.service import check_service
from testbed.wire.waits import read_waits

CLIENT = inet_aton(CLIENT_ADDRESS)


@dataclass(frozen=True, slots=True)
class LoadObservation(Observation):
    """What a page load leaves.

    ``hosts`` are the page's by their addresses in the lab, ``connections`` the server's account.
    """

    load: PageLoad | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()

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


def _prove(trial: Trial, observed: LoadObservation, out: Path) -> Proof | None:
    pcaps, condition = (
        (out / CAPTURE_FILE, out / SERVER_CAPTURE_FILE),
        trial.condition_as(Condition),
    )
    complete = all(pcap.exists() for pcap in pcaps)
    if observed.counters is None or observed.replay is None or not complete:
        return None
    capture, at_server = map(read_capture, pcaps)
    flows = read_flows(capture, CLIENT)
    traffic = observed.lab.traffic if observed.lab is not None else {}
    lost = sum(traffic.get(f"{way}.lost", 0) for way in ("up", "down"))
    proof = prove_flows(flows, observed.counters, condition.tcp, lost=lost)
    whole = not traffic.get("down.dropped") and not traffic.get("down.lost")
    largest, of_flights = check_first_flights(
        flows, condition.tcp.initcwnd_segments, condition.link, whole=whole
    )
    transits = read_transits(capture, at_server, CLIENT)
    exact = not in_real_time(trial.kernel)
    seen = (
        *check_whole(capture),
        *check_both_ways(flows, observed.counters["client"]),
        *of_flights,
        *check_openings(flows),
        *(_exact(capture, flows, condition, whole=whole) if exact else ()),
        *check_queueing(transits, traffic, condition.link, exact=exact),
        *check_conduct(capture, condition, observed.replay),
        *check_lookups(capture, condition.dns, observed.hosts),
        *check_reuse(flows, observed.connections, condition.tcp.requests_per_connection),
    )
    told = () if observed.load is None else _check_told(capture, flows, observed, exact=exact)
    problems = (*proof.problems, *seen, *told, *observed.problems)
    return replace(
        proof,
        first_flight_segments=largest,
        problems=problems,
        waits=read_waits(capture, flows, observed.counters),
        queueing=describe_queueing(transits, condition.link),
    )


def _check_told(
    capture: Capture, flows: Flows, observed: LoadObservation, *, exact: bool
) -> Iterator[str]:
    """Yield what the client told of its load, and packets and the server's log contradict."""
    load, replay = observed.load, observed.replay
    assert load is not None and replay is not None  # noqa: S101 - who asks has both
    yield from check_load_time(
        capture, flows, CLIENT, load, observed.connections, real_time=not exact
    )
    yield from check_counts(load, replay)


def _exact(capture: Capture, flows: Flows, condition: Condition, *, whole: bool) -> Iterator[str]:
    """Yield what packets show where nothing but the lab and the load takes time.

    ``whole``: no packet was dropped on its way down; a request that waited for one that was says
    nothing of the server.
    """
    yield from check_line(flows, condition.link)
    yield from check_strangers(capture, flows)
    if whole and condition.link.is_plain and not condition.link.loss_pct:
        most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
        yield from check_service(capture, flows, CLIENT, condition.link, most_ms)
