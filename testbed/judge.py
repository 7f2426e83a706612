"""From what a trial left behind to its Record: outcome, reason, and every number."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import inet_aton
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from testbed.base.machine import judge_machine
from testbed.kernel.interface import RawResult
from testbed.lab.topology import CLIENT_ADDRESS
from testbed.model import (
    CAPTURE_FILE,
    HAR_FILE,
    Condition,
    LabReading,
    Outcome,
    PageLoad,
    Proof,
    Record,
    Replay,
    ServedConnection,
    Trial,
)
from testbed.trial import SERVER_LOG_FILE
from testbed.wire.both_ways import check_both_ways, check_whole
from testbed.wire.conduct import check_conduct
from testbed.wire.first_flight import check_first_flights
from testbed.wire.flows import read_flows
from testbed.wire.lookups import check_lookups
from testbed.wire.packets import read_capture
from testbed.wire.proof import prove
from testbed.wire.reuse import check_reuse

ARTEFACTS = (CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a trial wrote down about itself; see ``testbed.trial``.

    ``hosts`` are the page's by their addresses in the lab, ``connections`` the server's account.
    ``problems`` are what it holds against its own proof, and ``error`` why it did not succeed.
    ``machine`` is what the machine did meanwhile, of a trial in real time.
    """

    lab: LabReading | None = None
    load: PageLoad | None = None
    replay: Replay | None = None
    counters: dict[str, dict[str, int]] | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()
    problems: tuple[str, ...] = ()
    error: str | None = None
    outcome: Literal["failed", "timeout", "unsupported"] = "failed"
    machine: dict[str, float] = field(default_factory=dict)


_OBSERVATION = TypeAdapter(Observation)


def conclude(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
    """Decide the outcome of ``trial`` and gather its Record; never raises for a bad trial."""
    lab: LabReading | None = None
    load: PageLoad | None = None
    replay: Replay | None = None
    proof: Proof | None = None
    machine: dict[str, float] = {}
    outcome: Outcome
    reason: str | None
    if raw.status != "ended" or raw.observation is None:
        outcome = "timeout" if raw.status == "timeout" else "failed"
        reason = "\n".join(part for part in (raw.message, raw.console_tail) if part)
    else:
        try:
            observed = _OBSERVATION.validate_python(json.loads(raw.observation.read_text()))
            lab, load, replay = observed.lab, observed.load, observed.replay
            machine = observed.machine
            proof = _prove(out / CAPTURE_FILE, observed, trial.condition)
            outcome, reason = _judge(observed, proof)
        except (OSError, ValueError, KeyError, ValidationError) as error:
            outcome, reason = "failed", f"the observation cannot be read: {error}"
    return Record(
        trial_id=trial.id,
        trial=trial,
        outcome=outcome,
        environment=environment,
        reason=reason,
        lab=lab,
        load=load,
        replay=replay,
        proof=proof,
        cost=raw.cost,
        artefacts=_hash_artefacts(out),
        attempt=attempt,
        machine=machine,
    )


def _prove(pcap: Path, observed: Observation, condition: Condition) -> Proof | None:
    if observed.counters is None or observed.replay is None or not pcap.exists():
        return None
    capture = read_capture(pcap)
    flows = read_flows(capture, inet_aton(CLIENT_ADDRESS))
    proof = prove(flows, observed.counters, condition.tcp)
    traffic = observed.lab.traffic if observed.lab is not None else {}
    largest, of_flights = check_first_flights(
        flows,
        condition.tcp.initcwnd_segments,
        condition.link,
        whole=not traffic.get("down.dropped") and not traffic.get("down.lost"),
    )
    seen = (
        *check_whole(capture),
        *check_both_ways(flows, observed.counters["client"]),
        *of_flights,
        *check_conduct(capture, condition, observed.replay),
        *check_lookups(capture, condition.dns, observed.hosts),
        *check_reuse(flows, observed.connections, condition.tcp.requests_per_connection),
    )
    problems = (*proof.problems, *seen, *observed.problems)
    return replace(proof, first_flight_segments=largest, problems=problems)


def _judge(observed: Observation, proof: Proof | None) -> tuple[Outcome, str | None]:
    if observed.lab is not None and observed.lab.problems:
        return "lab_mismatch", "; ".join(observed.lab.problems)
    disturbed = judge_machine(observed.machine)
    if disturbed:
        return "lab_mismatch", "; ".join(disturbed)
    if observed.error is not None:
        return observed.outcome, observed.error
    if observed.lab is None or observed.load is None or observed.replay is None:
        return "failed", "the trial left no measurement"
    if proof is None:
        return "unproven", "there is no capture, or there are no counters"
    if not proof.proven:
        return "unproven", "; ".join(proof.problems)
    return "ok", None


def _hash_artefacts(out: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ARTEFACTS
        if (out / name).exists()
    }
