"""How a trial ended: one line of ``records.jsonl``, and the files of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from testbed.model.asked import Trial
from testbed.model.measured import Cost, LabReading, PageLoad, Proof, Replay

SCHEMA_VERSION = 3

# The files of a trial's folder, between the two halves of the harness: asked, seen, kept.
TRIAL_FILE = "trial.json"
OBSERVATION_FILE = "observation.json"
CAPTURE_FILE = "client.pcap"
HAR_FILE = "load.har"

Outcome = Literal["ok", "failed", "timeout", "unsupported", "lab_mismatch", "unproven"]


@dataclass(frozen=True, slots=True)
class Record:
    """The end of a trial, whatever it was; one line of ``records.jsonl``.

    ``artefacts`` maps a file name in ``trials/<trial_id>/`` to the SHA-256 of its content.
    ``position`` is the trial's place in its block, from 0; in virtual time, where a trial cannot
    disturb the next, it has none.
    ``machine`` is what the machine did meanwhile, of a trial in real time: ``steal_pct``,
    ``others_pct`` (other processes), ``load_1min``, ``worst_lateness_ms`` of the link, ``cpu_s``,
    and how long client and server waited for a processor (``client_queued_ms``, in percent of the
    load ``client_queued_pct``).
    """

    trial_id: str
    trial: Trial
    outcome: Outcome
    environment: str
    reason: str | None = None
    lab: LabReading | None = None
    load: PageLoad | None = None
    replay: Replay | None = None
    proof: Proof | None = None
    cost: Cost | None = None
    artefacts: dict[str, str] = field(default_factory=dict)
    attempt: int = 1
    position: int | None = None
    machine: dict[str, float] = field(default_factory=dict)
    schema: int = SCHEMA_VERSION
