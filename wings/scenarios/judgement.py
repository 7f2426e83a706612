"""Judgement of a scenario: was the promise kept, by the captures of all hosts and their calls?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from testbed.base.addresses import pack_address
from testbed.capture.packets import read_capture
from testbed.capture.transits import Crossings
from testbed.kinds.judgement import Judgement
from testbed.mechanisms.checks import CHECKS
from testbed.model import Trial
from testbed.model.observation import Observation
from testbed.proof.check import check, find_problems
from testbed.proof.evidence import Evidence, LackingError
from testbed.proof.summary import summarise
from wings.scenarios.crossings import is_summed, read_script_crossings
from wings.scenarios.matching import Captures, match_calls, match_packets, see
from wings.scenarios.measurement import Performance, ScenarioResult
from wings.scenarios.promise import Promise, read_promise
from wings.scenarios.script import Script
from wings.scenarios.spec import Scenario
from wings.scenarios.words import ATTACKER, address_of

CLOCK_NS = 1000
"""What a time may be off that two clock reads are for."""


@dataclass(frozen=True, slots=True)
class ScenarioObservation(Observation):
    """What a scenario leaves: ``performed`` is what happened, which is still to be judged."""

    performed: Performance | None = None


OBSERVATION = ScenarioObservation


@dataclass(frozen=True, eq=False)
class ScenarioEvidence(Evidence):
    """Evidence of a scenario; ``promise`` is what was to be performed."""

    @cached_property
    def promise(self) -> Promise:
        """The promise, with its script."""
        return read_promise(self.trial.condition_as(Scenario).text)

    @cached_property
    def performed(self) -> Performance:
        """What was performed."""
        if not isinstance(self.observed, ScenarioObservation) or self.observed.performed is None:
            raise LackingError("nothing was performed")
        return self.observed.performed

    @cached_property
    def captures(self) -> Captures:
        """The packets of each host."""
        names = (*self.promise.script.hosts, ATTACKER)
        return {name: read_capture(self.out / f"{name}.pcap").packets for name in names}

    @cached_property
    def crossings(self) -> tuple[Crossings, ...]:
        """The packets as the middlebox had to pass them on, and as they came."""
        script, ip = self.promise.script, self.promise.ip
        return (read_script_crossings(script, ip, self.performed, self.captures),)

    @property
    def routers(self) -> int:
        """None takes from a packet's hop limit."""
        return 0

    def read_counters(self) -> dict[str, dict[str, int]]:
        """Return what the kernels of client and server counted; a script need not have both."""
        counters = super().read_counters()
        return {end: counters.get(end, {}) for end in ("client", "server")}


def judge(trial: Trial, observed: ScenarioObservation, out: Path) -> Judgement:
    """Return how the promise came out, if its script was performed to the end, and what is proven.

    Raises:
        OSError, ValueError, LookupError: the captures are not whole.
    """
    if observed.performed is None:
        return Judgement(measured=None, proof=None)
    seen = ScenarioEvidence(trial, observed, out)
    client = pack_address(address_of("client", seen.promise.ip))
    seen = replace(seen, clients=(client,))
    result = _judge(seen.promise, seen.performed, seen.captures)
    if not seen.has("counters") or not seen.has("capture"):
        return Judgement(result, None)
    problems = (*observed.problems, *find_problems(seen, (*CHECKS, *OWN_CHECKS)))
    return Judgement(result, summarise(seen, problems))


def _judge(promise: Promise, performed: Performance, captures: Captures) -> ScenarioResult:
    differences = _compare(promise.script, performed, captures)
    if not differences:
        return ScenarioResult("kept", performance=performed)
    changed = promise.changed
    if changed is not None and not _compare(changed.script, performed, captures):
        return ScenarioResult("changed", differences, 0, performed)
    return ScenarioResult("broken", differences, len(differences), performed)


@check("scenario's captures", "performed", "captures")
def check_carried(seen: ScenarioEvidence) -> Iterator[str]:
    """Each host's capture has all packets that it sent and got, with their checksums right."""
    performed, captures = seen.performed, seen.captures
    for name, packets in captures.items():
        carried = sum(passage.sender == name for passage in performed.passages) + sum(
            arrival.host == name for passage in performed.passages for arrival in passage.arrivals
        )
        if carried > len(packets):
            yield f"{name}.pcap has {len(packets)} packets, the network carried {carried}"
        wrong = sum(not is_summed(packet) for packet in packets)
        if wrong:
            yield f"{wrong} packets of {name}.pcap have a checksum of other bytes"


@check("scenario's times", "performed", "captures")
def check_times(seen: ScenarioEvidence) -> Iterator[str]:
    """The network and the captures agree on when each packet was where.

    No packet of a host takes less than half a round trip; what is in the middle may delay it.
    """
    performed, captures, rtt_ms = seen.performed, seen.captures, seen.promise.rtt_ms
    half_ns = rtt_ms * 500_000
    for passage in performed.passages:
        places = [(passage.sender, passage.number, passage.at_ns)]
        places += [(each.host, each.number, each.at_ns) for each in passage.arrivals]
        for name, number, at_ns in places:
            if captures[name][number].at_ns != at_ns:
                yield f"packet {number} of {name}.pcap was at another time than on the network"
        least_ns = min((each.at_ns for each in passage.arrivals), default=math.inf) - passage.at_ns
        if passage.sender != ATTACKER and least_ns < half_ns - CLOCK_NS:
            yield f"packet {passage.number} of {passage.sender}.pcap took {least_ns / 1e6:.6g} ms"


@check("scenario's script", "performed")
def check_script(seen: ScenarioEvidence) -> Iterator[str]:
    """The lines of the script were performed, and in its order."""
    performed, script = seen.performed, seen.promise.script
    lines = [(each.line, each.actor, each.text) for each in script.actions]
    done = [(call.line, call.actor, call.text) for call in performed.calls]
    if lines != done:
        other = next((b for a, b in zip_longest(lines, done) if a != b), None)
        yield f"{len(done)} of {len(lines)} lines were performed; {other} is not the script's"
    ends = [at_ns for call in performed.calls for at_ns in (call.at_ns, call.ended_ns)]
    if ends != sorted(ends):
        yield "a line of the script ended before it began, or before the one above it"


@check("scenario's delay", "performed")
def check_delay(seen: ScenarioEvidence) -> Iterator[str]:
    """The network's delay was measured, and held against the one asked for."""
    lab, rtt_ms = seen.observed.lab, seen.promise.rtt_ms
    found = {} if lab is None else {m.name: m for m in lab.measurements}
    if "delay" not in found:
        yield "the delay of the network was not measured"
    elif not math.isclose(found["delay"].theory, rtt_ms / 2):
        yield f"the delay was held against {found['delay'].theory:g} ms, asked was {rtt_ms / 2:g}"


@check("scenario's counters", "performed", "captures")
def check_counters(seen: ScenarioEvidence) -> Iterator[str]:
    """Each host's kernel counted the segments that its capture has."""
    captures, counters = seen.captures, seen.observed.counters or {}
    for name in captures.keys() - {ATTACKER} - counters.keys():
        yield f"the {name}'s kernel was not asked what it counted"
    for name, counted in counters.items():
        own = captures[name]
        sent = sum(p.protocol == "TCP" and p.frame[11] != 0 for p in own)
        taken = sum(p.protocol == "TCP" for p in own) - sent
        took, least = counted.get("TcpInSegs", 0), counted.get("TcpOutSegs", 0)
        if took != taken:
            yield f"the {name}'s kernel took {took} segments, captured: {taken}"
        # What is sent again may be in both counts, or in one (tcp_output.c).
        most = least + counted.get("TcpRetransSegs", 0)
        if not least <= sent <= most:
            yield f"the {name}'s kernel sent up to {most} segments, captured: {sent}"


OWN_CHECKS = (check_carried, check_counters, check_times, check_script, check_delay)
"""The checks of what a scenario alone leaves."""


def _compare(script: Script, performed: Performance, captures: Captures) -> tuple[str, ...]:
    sights = see(performed, captures)
    return (*match_calls(script, performed.calls), *match_packets(script, sights))
