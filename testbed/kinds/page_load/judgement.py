"""Judgement of a page load: what it has to have measured, and what its capture proves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.base.addresses import format_address
from testbed.capture.ecn import count_marks
from testbed.capture.transits import describe_queueing
from testbed.capture.waits import read_waits
from testbed.kinds.judgement import Judgement
from testbed.kinds.page_load.measurement import SecondLoad
from testbed.kinds.page_load.second_judgement import judge_second
from testbed.mechanisms.checks import CHECKS
from testbed.mechanisms.initial_window.proof import first_flights
from testbed.mechanisms.ip.proof import describe_choice
from testbed.mechanisms.visits.proof import describe_visits
from testbed.model import PageLoad, ServedConnection, Trial
from testbed.model.command import CLIENT as COMMAND
from testbed.model.observation import Observation
from testbed.model.traffic import parse_traffic, second_page
from testbed.proof.account import read_account
from testbed.proof.browser import list_as_told
from testbed.proof.check import find_problems
from testbed.proof.evidence import Evidence
from testbed.proof.neighbours import NeighbourAccount
from testbed.proof.neighbours.flow import LoadWindow
from testbed.proof.summary import summarise

NEEDED = ("counters", "replay", "capture", "at_server")
"""Evidence without which nothing is proven."""


@dataclass(frozen=True, slots=True)
class LoadObservation(Observation):
    """What a page load leaves.

    ``second`` is what a neighbour saw that loaded the page, too.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()
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
    seen = LoadEvidence(trial, observed, out)
    if not all(map(seen.has, NEEDED)):
        return Judgement(load, None)
    proof = summarise(seen, (*find_problems(seen, CHECKS), *observed.problems))
    account = read_account(seen)
    return Judgement(load, replace(
        proof,
        account={} if account is None else account.by_owner(),
        awaited=() if account is None else _names(account.handshakes(), seen.hosts),
        idle_connections=sum(flow.ends not in seen.served_ends for flow in seen.flows.flows),
        first_flight_segments=max((f.segments for f in first_flights(seen)), default=0),
        waits=read_waits(seen.capture, seen.flows, seen.counters),
        ecn=count_marks(seen.marks),
        queueing=describe_queueing(seen.transits, seen.link) if seen.steady else {},
        neighbours=() if seen.neighbour_account is None else seen.neighbour_account.flows,
        ip=describe_choice(seen.flows, seen.link.ip, seen.hosts),
        visits=tuple(describe_visits(seen)),
        as_told=list_as_told(seen),
    ))  # fmt: skip


def _names(addresses: Iterable[bytes], hosts: Mapping[str, str]) -> tuple[str, ...]:
    texts = map(format_address, addresses)
    return tuple(dict.fromkeys(hosts.get(text, text) for text in texts))


@dataclass(frozen=True, eq=False)
class LoadEvidence(Evidence):
    """Evidence of a page load; one of its neighbours may have loaded the page as well."""

    def read_window(self) -> LoadWindow:
        """Return from when to when the page was loaded."""
        window = super().read_window()
        if self.condition.client != COMMAND:
            return window
        return replace(window, zero_ns=self.observed.load_ns)

    def read_neighbours(self) -> NeighbourAccount | None:
        """Read what neighbours did, a second load of the page among it."""
        account = super().read_neighbours()
        page = second_page(parse_traffic(self.condition.traffic))
        if account is None or page is None:
            return account
        second = self.observed.second if isinstance(self.observed, LoadObservation) else None
        if second is None:
            told = f"neighbour {page.text}: it has not loaded the page"
            return replace(account, problems=(*account.problems, told))
        flow, wrong = judge_second(page, second, account.apart, self)
        problems = (*account.problems, *(f"neighbour {page.text}: {each}" for each in wrong))
        return replace(account, flows=(*account.flows, flow), problems=problems)
