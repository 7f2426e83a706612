"""Observation of a trial: what it wrote down about itself before anybody judged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from testbed.model import LabReading, Replay


@dataclass(frozen=True, slots=True)
class Observation:
    """What a trial of any kind leaves; each kind's judgement adds what its own leave.

    ``problems`` are what it holds against its own proof, and ``error`` why it did not succeed.
    ``trial`` is the one that it was given, as plain data, ``archive`` name and digest of the page
    that it served.
    ``machine`` is what the machine did meanwhile, of a trial in real time.
    """

    lab: LabReading | None = None
    replay: Replay | None = None
    counters: dict[str, dict[str, int]] | None = None
    problems: tuple[str, ...] = ()
    error: str | None = None
    outcome: Literal["failed", "timeout", "unsupported"] = "failed"
    machine: dict[str, float] = field(default_factory=dict)
    trial: dict[str, Any] = field(default_factory=dict)
    archive: dict[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> object | None:
        """What the trial measured, where it says so itself; ``None``: its judge has to."""
        return None
