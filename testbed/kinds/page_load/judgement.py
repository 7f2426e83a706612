"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import inet_aton

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.lab.topology import CLIENT_ADDRESS, CLIENT_MAC
from testbed.model import (
    CAPTURE_FILE,
    FIFO,
    Condition,
    LinkChange,
    PageLoad,
    Proof,
    ServedConnection,
    Trial,
    in_real_time,
)
from testbed.model.impairments import fastest, is_drawn, is_lossy, without_loss
from testbed.wire.both_ways import check_both_ways, check_strangers, check_whole
from testbed.wire.damage import check_damage, split_damaged
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import Flows, read_flows
from testbed.wire.line import check_line
from testbed.wire.load_time import check_counts, check_load_time
from testbed.wire.lookups import check_lookups
from testbed.wire.observed_knobs import check_conduct
from testbed.wire.openings import check_openings
from testbed.wire.packets import Capture, Packet, read_capture
from testbed.wire.proof import prove as prove_flows
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
    pcap, condition = out / CAPTURE_FILE, trial.condition_as(Condition)
    if observed.counters is None or observed.replay is None or not pcap.exists():
        return None
    capture, link = read_capture(pcap), condition.link
    traffic = observed.lab.traffic if observed.lab is not None else {}
    damaged: tuple[Packet, ...] = ()
    if link.corrupt_pct:
        capture, damaged = split_damaged(capture, CLIENT, CLIENT_MAC)
    flows = read_flows(capture, CLIENT)
    # The client's kernel counts segments before it looks at what is in them.
    flows = replace(flows, down=flows.down + sum(1 for p in damaged if p.protocol == "TCP"))
    lost = sum(traffic.get(f"{way}.{what}", 0)
               for way in ("up", "down") for what in ("lost", "corrupted"))  # fmt: skip
    proof = prove_flows(flows, observed.counters, condition.tcp, lost=lost)
    whole = not any(traffic.get(f"down.{what}") for what in ("dropped", "lost", "corrupted"))
    steady = not (link.changes or is_drawn(without_loss(link)))
    largest, of_flights = check_first_flights(
        flows,
        condition.tcp.initcwnd_segments,
        fastest(link),
        whole=whole and steady,
    )
    seen = (
        *check_whole(capture),
        *check_both_ways(flows, observed.counters["client"]),
        # Of segments that came in another order nobody can tell which an acknowledgement let go.
        *(() if link.reorder_pct else of_flights),
        *check_openings(flows),
        *check_damage(damaged, traffic.get("down.corrupted", 0)),
        *(
            ()
            if in_real_time(trial.kernel)
            else _exact(
                capture,
                flows,
                condition,
                () if observed.lab is None else observed.lab.steps,
                traffic.get("down.duplicated", 0),
                whole=whole and steady,
            )
        ),
        *check_conduct(capture, condition, observed.replay),
        *check_lookups(capture, condition.dns, observed.hosts),
        *check_reuse(flows, observed.connections, condition.tcp.requests_per_connection),
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
    return replace(proof, first_flight_segments=largest, problems=problems, waits=waits)


def _exact(
    capture: Capture,
    flows: Flows,
    condition: Condition,
    steps: Sequence[LinkChange],
    copies: int,
    *,
    whole: bool,
) -> Iterator[str]:
    """Yield what packets show where nothing but the lab and the load takes time.

    ``whole``: no packet was dropped on its way down, and all had the same delay; a request that
    waited for one that was says nothing of the server.  ``copies`` were made on the way down.
    """
    yield from check_line(flows, condition.link, steps)
    yield from check_strangers(capture, flows, copies)
    if whole and condition.link.qdisc == FIFO and not is_lossy(condition.link):
        most_ms = condition.server_think_ms * (1 + condition.think_spread_pct / 100)
        yield from check_service(capture, flows, CLIENT, condition.link, most_ms)
