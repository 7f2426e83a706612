"""Judgement of a scenario: was the promise kept, by the captures of all hosts and their calls?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from socket import inet_aton

from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.kinds.scenario.matching import match_calls, match_packets, see
from testbed.kinds.scenario.measurement import Performance, ScenarioResult
from testbed.kinds.scenario.promise import Promise, read_promise
from testbed.kinds.scenario.script import Script
from testbed.kinds.scenario.spec import Scenario
from testbed.kinds.scenario.words import ADDRESSES, ATTACKER
from testbed.model import CAPTURE_FILE, Proof, TcpSpec, Trial
from testbed.wire.flows import read_flows
from testbed.wire.packets import Packet, read_capture
from testbed.wire.proof import prove as prove_flows

Captures = Mapping[str, Sequence[Packet]]
"""The packets of each host."""


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
    proof = _prove(performed, observed, captures, out)
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
    performed: Performance, observed: ScenarioObservation, captures: Captures, out: Path
) -> Proof | None:
    pcap = out / CAPTURE_FILE
    if observed.counters is None or not pcap.exists():
        return None
    flows = read_flows(read_capture(pcap), inet_aton(ADDRESSES["client"]))
    counters = {end: observed.counters.get(end, {}) for end in ("client", "server")}
    problems = (
        *observed.problems,
        *check_whole(performed, captures),
        *check_counters(captures, observed.counters),
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


def check_counters(captures: Captures, counters: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a sentence where a host's kernel counted other segments than its capture has."""
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
