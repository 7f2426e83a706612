"""From what a trial left behind to its Record: outcome, reason, and every number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from testbed.base.machine import judge_machine
from testbed.kernel.run.interface import RawResult
from testbed.kinds.command import judgement as command
from testbed.kinds.command.performance import ERROR_FILE, OUTPUT_FILE
from testbed.kinds.judgement import Judgement
from testbed.kinds.observation import Observation
from testbed.kinds.page_load import judgement as page_load
from testbed.kinds.page_load.performance import SERVER_LOG_FILE
from testbed.kinds.scenario import judgement as scenario
from testbed.kinds.server_load import judgement as server_load
from testbed.model import (
    CAPTURE_FILE,
    HAR_FILE,
    HISTOGRAMS_FILE,
    Kind,
    Outcome,
    Record,
    Trial,
)

ARTEFACTS = (
    *(CAPTURE_FILE, HAR_FILE, HISTOGRAMS_FILE, SERVER_LOG_FILE),
    *(OUTPUT_FILE, ERROR_FILE),
)
_JUDGE: dict[Kind, Callable[[Trial, Observation, Path], Judgement]] = {
    "page_load": page_load.judge,
    "server_load": server_load.judge,
    "scenario": scenario.judge,
    "command": command.judge,
}
_OBSERVATION = TypeAdapter(Observation)


def conclude(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
    """Decide the outcome of ``trial`` and gather its Record; never raises for a bad trial."""
    observed = Observation()
    judgement = Judgement(measured=False, proof=None)
    outcome: Outcome
    reason: str | None
    if raw.status != "ended" or raw.observation is None:
        outcome = "timeout" if raw.status == "timeout" else "failed"
        reason = "\n".join(part for part in (raw.message, raw.console_tail) if part)
    else:
        try:
            observed = _OBSERVATION.validate_python(json.loads(raw.observation.read_text()))
            judgement = _JUDGE[trial.kind](trial, observed, out)
            outcome, reason = _decide(observed, judgement)
        except (OSError, ValueError, LookupError, ValidationError) as error:
            outcome, reason = "failed", f"the observation cannot be read: {error}"
    return Record(
        trial_id=trial.id,
        trial=trial,
        outcome=outcome,
        environment=environment,
        reason=reason,
        lab=observed.lab,
        load=observed.load,
        replay=observed.replay,
        served=observed.served,
        scenario=judgement.scenario,
        executed=observed.executed,
        proof=judgement.proof,
        cost=raw.cost,
        artefacts=_hash_artefacts(out),
        attempt=attempt,
        machine=observed.machine,
    )


def _decide(observed: Observation, judgement: Judgement) -> tuple[Outcome, str | None]:
    if observed.lab is not None and observed.lab.problems:
        return "lab_mismatch", "; ".join(observed.lab.problems)
    disturbed = judge_machine(observed.machine)
    if disturbed:
        return "lab_mismatch", "; ".join(disturbed)
    if observed.error is not None:
        return observed.outcome, observed.error
    if observed.lab is None or not judgement.measured:
        return "failed", "the trial left no measurement"
    if judgement.proof is None:
        return "unproven", "there is no capture, or there are no counters"
    if not judgement.proof.proven:
        return "unproven", "; ".join(judgement.proof.problems)
    return "ok", None


def _hash_artefacts(out: Path) -> dict[str, str]:
    others = sorted({path.name for path in out.glob("*.pcap")} - {*ARTEFACTS})
    return {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in (*ARTEFACTS, *others)
        if (out / name).exists()
    }
