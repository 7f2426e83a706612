"""Record of a trial's end: one line of ``records.jsonl``, and the files of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from testbed.model.command import Executed
from testbed.model.measured import Cost, LabReading, PageLoad, Proof, Replay
from testbed.model.planned import Trial
from testbed.model.scenario import ScenarioResult
from testbed.model.served import ServedLoad

SCHEMA_VERSION = 3

Measured = PageLoad | ServedLoad | ScenarioResult | Executed
"""What a trial measured, by its kind."""

# The files of a trial's folder, between the two halves of the harness: asked, seen, kept.
TRIAL_FILE = "trial.json"
OBSERVATION_FILE = "observation.json"
CAPTURE_FILE = "client.pcap"
HAR_FILE = "load.har"
HISTOGRAMS_FILE = "response-times.hlog"

Outcome = Literal["ok", "failed", "timeout", "unsupported", "lab_mismatch", "unproven"]


@dataclass(frozen=True, slots=True)
class Record:
    """The end of a trial, whatever it was; one line of ``records.jsonl``."""

    trial_id: str
    """The trial's name: 16 hex digits of the digest of all that decides its result."""
    trial: Trial
    """What was asked."""
    outcome: Outcome
    """How the trial ended: `ok` counts; `failed` and `timeout` may be run again; `unsupported`
    (this kernel or machine cannot), `lab_mismatch` (the lab was not as asked) and `unproven`
    (capture and counters contradict the mechanism) give no number."""
    environment: str
    """The environment id: records of different ids are never pooled."""
    reason: str | None = None
    """Why the outcome is not `ok`."""
    lab: LabReading | None = None
    """The lab as measured; null where it could not be opened."""
    load: PageLoad | None = None
    """The load as the client observed it; null where it did not end."""
    replay: Replay | None = None
    """How the server answered; null where it was never asked."""
    served: ServedLoad | None = None
    """What became of the connections of a load on a server; null of others."""
    scenario: ScenarioResult | None = None
    """How a scenario came out, and what happened; null of others."""
    executed: Executed | None = None
    """What became of a command in the lab; null of others."""
    proof: Proof | None = None
    """What the packet capture proves; null without a capture."""
    cost: Cost | None = None
    """The time that the trial took; null in baselines."""
    artefacts: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of each kept file of `trials/<trial_id>/`, by file name."""
    attempt: int = 1
    """Which attempt of the trial this is, from 1."""
    position: int | None = None
    """The trial's place in its block, from 0; null in virtual time, where a trial cannot disturb
    the next."""
    machine: dict[str, float] = field(default_factory=dict)
    """The machine during a load in real time; empty in virtual time and in baselines. Shares of
    all processors' time: `steal_pct` (the hypervisor took), `others_pct` (other processes).
    `cpu_s` (processor time of the trial), `wall_s`, `load_1min` and `runnable` (/proc/loadavg).
    Waits for a processor: `client_queued_ms`, `server_queued_ms`, and the same as a share of the
    load, `client_queued_pct` and `server_queued_pct`. The link: `worst_lateness_ms` and
    `mean_lateness_ms` (packets that left after they were due), `dropped_packets`, `stray_packets`
    (around the link), `waiting_packets`, `untimed_packets` (without a time of arrival from the
    kernel), `link_cpu_s` (its processor time)."""
    schema: int = SCHEMA_VERSION
    """The schema of the record; others are refused."""

    @property
    def measured(self) -> Measured | None:
        """What the trial measured, whatever its kind; ``None`` where it came to no end."""
        found = (self.load, self.served, self.scenario, self.executed)
        return next((one for one in found if one is not None), None)
