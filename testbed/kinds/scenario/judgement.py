"""Judgement of a scenario: was the promise kept, by the captures of all hosts and their calls?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from testbed.base.addresses import pack_address
from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.kinds.scenario.matching import match_calls, match_packets, see
from testbed.kinds.scenario.measurement import Performance, ScenarioResult
from testbed.kinds.scenario.promise import Promise, read_promise
from testbed.kinds.scenario.script import Script
from testbed.kinds.scenario.spec import Scenario
from testbed.kinds.scenario.words import ATTACKER, address_of
from testbed.model import CAPTURE_FILE, LabReading, Proof, TcpSpec, Trial
from testbed.wire.flows import read_flows
from testbed.wire.packets import Packet, read_capture
from testbed.wire.proof import prove as prove_flows

Captures = Mapping[str, Sequence[Packet]]
"""The packets of each host."""
CLOCK_NS = 1000
"""What a time may be off that two clock reads are for."""


@dataclass(frozen=True, slots=True)
class ScenarioObservation(Observation):
    """What a scenario leaves: ``performed`` is what happened, which is still to be judged."""

    performed: Performance | None = None


OBSERVATION = ScenarioObservation


def judge(trial: Trial, observed: ScenarioObservation, out: Path) -> Judgement:
    """Return how the promise came out, if its script was performed to the end, and what is proven.

    Raises:
        OSError, ValueError, LookupError: the captures are not whole.
    """
    performed = observed.performed
    if performed is None:
        return Judgement(measured=None, proof=None)
    promise = read_promise(trial.condition_as(Scenario).text)
    captures = _read_captures(promise, out)
    proof = _prove(promise, performed, observed, captures, out)
    return Judgement(_judge(promise, performed, captures), proof)


def _judge(promise: Promise, performed: Performance, captures: Captures) -> ScenarioResult:
    differences = _compare(promise.script, performed, captures)
    if not differences:
        return ScenarioResult("kept", performance=performed)
    changed = promise.changed
    if changed is not None and not _compare(changed.script, performed, captures):
        return ScenarioResult("changed", differences, 0, performed)
    return ScenarioResult("broken", differences, len(differences), performed)


def _prove(
    promise: Promise,
    performed: Performance,
    observed: ScenarioObservation,
    captures: Captures,
    out: Path,
) -> Proof | None:
    pcap = out / CAPTURE_FILE
    if observed.counters is None or not pcap.exists():
        return None
    flows = read_flows(read_capture(pcap), [pack_address(address_of("client", promise.ip))])
    counters = {end: observed.counters.get(end, {}) for end in ("client", "server")}
    problems = (
        *observed.problems,
        *check_whole(performed, captures),
        *check_counters(captures, observed.counters),
        *check_times(performed, captures, promise.rtt_ms),
        *check_script(performed, promise.script),
        *check_delay(observed.lab, promise.rtt_ms),
    )
    return replace(prove_flows(flows, counters, TcpSpec(), whole=False), problems=problems)


def check_whole(performed: Performance, captures: Captures) -> Iterator[str]:
    """Yield a sentence for each capture that has other packets than went through the network."""
    for name, packets in captures.items():
        carried = sum(passage.sender == name for passage in performed.passages) + sum(
            arrival.host == name for passage in performed.passages for arrival in passage.arrivals
        )
        if carried > len(packets):
            yield f"{name}.pcap has {len(packets)} packets, the network carried {carried}"


def check_times(performed: Performance, captures: Captures, rtt_ms: float) -> Iterator[str]:
    """Yield a sentence where the network and the captures disagree on when a packet was where.

    No packet of a host takes less than half a round trip; what is in the middle may delay it.
    """
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


def check_script(performed: Performance, script: Script) -> Iterator[str]:
    """Yield a sentence where other lines were performed than the script's, or in another order."""
    lines = [(each.line, each.actor, each.text) for each in script.actions]
    done = [(call.line, call.actor, call.text) for call in performed.calls]
    if lines != done:
        other = next((b for a, b in zip_longest(lines, done) if a != b), None)
        yield f"{len(done)} of {len(lines)} lines were performed; {other} is not the script's"
    ends = [at_ns for call in performed.calls for at_ns in (call.at_ns, call.ended_ns)]
    if ends != sorted(ends):
        yield "a line of the script ended before it began, or before the one above it"


def check_delay(lab: LabReading | None, rtt_ms: float) -> Iterator[str]:
    """Yield a sentence if the network's delay was not measured, or held against another."""
    found = {} if lab is None else {m.name: m for m in lab.measurements}
    if "delay" not in found:
        yield "the delay of the network was not measured"
    elif not math.isclose(found["delay"].theory, rtt_ms / 2):
        yield f"the delay was held against {found['delay'].theory:g} ms, asked was {rtt_ms / 2:g}"


def check_counters(captures: Captures, counters: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a sentence where a host's kernel counted other segments than its capture has."""
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


def _read_captures(promise: Promise, out: Path) -> dict[str, tuple[Packet, ...]]:
    names = (*promise.script.hosts, ATTACKER)
    return {name: read_capture(out / f"{name}.pcap").packets for name in names}


def _compare(script: Script, performed: Performance, captures: Captures) -> tuple[str, ...]:
    sights = see(performed, captures)
    return (*match_calls(script, performed.calls), *match_packets(script, sights))
