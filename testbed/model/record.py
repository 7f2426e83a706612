"""Record of a trial's end: one line of ``records.jsonl``, and the files of its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from testbed.model.measured import Cost, LabReading, Proof, Replay
from testbed.model.planned import Trial

SCHEMA_VERSION = 3

# The files of a trial's folder, between the two halves of the harness: asked, seen, kept.
TRIAL_FILE = "trial.json"
OBSERVATION_FILE = "observation.json"
CAPTURE_FILE = "client.pcap"
SERVER_CAPTURE_FILE = "server.pcap"
"""Headers alone."""
NEIGHBOUR_FILE, REMOTE_FILE = "neighbour.pcap", "remote.pcap"
HAR_FILE = "load.har"
SERVER_LOG_FILE = "nginx-error.log"
VISIT_HARS = tuple(f"visit-{number}.har" for number in range(1, 20))
"""The same of the visits before the one that counts, in their order."""
KEYS_FILE = "keys.log"
"""The secrets of the client's sessions, in NSS's format (RFC 9850): they open the captures."""

Outcome = Literal["ok", "failed", "timeout", "unsupported", "lab_mismatch", "unproven"]
_M = TypeVar("_M")


@dataclass(frozen=True, slots=True)
class Record:
    """The end of a trial, whatever it was; one line of ``records.jsonl``.

    A line has what was measured under a key of the kind's own (``testbed.results.records``).
    """

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
    measured: object | None = None
    """What the trial measured, of its kind's own type; null where it came to no end."""
    replay: Replay | None = None
    """How the server answered; null where it was never asked."""
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

    def measured_as(self, type_: type[_M]) -> _M | None:
        """Return what the trial measured; ``None`` where it did not, or is of another kind."""
        return self.measured if isinstance(self.measured, type_) else None
