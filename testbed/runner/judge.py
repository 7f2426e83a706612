"""From what a trial left behind to its Record: outcome, reason, and every number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from testbed.base.machine import judge_machine
from testbed.kernel.run.interface import RawResult
from testbed.kinds import KINDS
from testbed.kinds.judgement import Judgement
from testbed.model import OBSERVATION_FILE, Outcome, Record, Trial
from testbed.model.observation import Observation
from testbed.runner.performed import check_performed

ARTEFACTS = tuple(
    dict.fromkeys((*(name for kind in KINDS.values() for name in kind.files), OBSERVATION_FILE))
)
"""Files of a trial's folder that its record has digests of, beside other captures and visits."""


def conclude(trial: Trial, raw: RawResult, out: Path, environment: str, attempt: int) -> Record:
    """Decide the outcome of ``trial`` and gather its Record; never raises for a bad trial."""
    observed = Observation()
    judgement = Judgement(measured=None, proof=None)
    outcome: Outcome
    reason: str | None
    if raw.status != "ended" or raw.observation is None:
        outcome = "timeout" if raw.status == "timeout" else "failed"
        reason = "\n".join(part for part in (raw.message, raw.console_tail) if part)
    else:
        try:
            judge, adapter = _judge_of(trial.kind)
            observed = adapter.validate_python(json.loads(raw.observation.read_text()))
            observed = replace(observed, traces=dict(raw.traces), built=raw.built)
            judgement = Judgement(observed.measured, proof=None)
            otherwise = tuple(check_performed(trial, observed, raw.archive))
            judgement = judge(trial, observed, out)
            outcome, reason = _decide(observed, judgement, otherwise)
        except (OSError, ValueError, LookupError, ValidationError) as error:
            outcome, reason = "failed", f"the observation cannot be read: {error}"
    return Record(trial_id=trial.id, trial=trial, outcome=outcome, environment=environment,
                  reason=reason, lab=observed.lab, measured=judgement.measured,
                  replay=observed.replay, proof=judgement.proof, cost=raw.cost,
                  artefacts=_hash_artefacts(out), attempt=attempt,
                  machine=observed.machine)  # fmt: skip


@cache
def _judge_of(
    kind: str,
) -> tuple[Callable[[Trial, Any, Path], Judgement], TypeAdapter[Observation]]:
    """Return what judges trials of a kind, and what reads their observations."""
    module = import_module(KINDS[kind].judgement)
    return module.judge, TypeAdapter(module.OBSERVATION)


def _decide(
    observed: Observation, judgement: Judgement, otherwise: tuple[str, ...]
) -> tuple[Outcome, str | None]:
    of_lab = () if observed.lab is None else observed.lab.problems
    if of_lab or otherwise:
        return "lab_mismatch", "; ".join((*of_lab, *otherwise))
    disturbed = judge_machine(observed.machine)
    if disturbed:
        return "lab_mismatch", "; ".join(disturbed)
    if observed.error is not None:
        return observed.outcome, observed.error
    if observed.lab is None or judgement.measured is None:
        return "failed", "the trial left no measurement"
    if judgement.proof is None:
        return "unproven", "there is no capture, or there are no counters"
    if not judgement.proof.proven:
        return "unproven", "; ".join(judgement.proof.problems)
    return "ok", None


def _hash_artefacts(out: Path) -> dict[str, str]:
    found = {path.name for end in ("*.pcap", "visit-*.har") for path in out.glob(end)}
    others = sorted(found - {*ARTEFACTS})
    return {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in (*ARTEFACTS, *others)
        if (out / name).exists()
    }
