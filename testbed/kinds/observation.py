"""Observation of a trial: what it wrote down about itself before anybody judged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from testbed.model import (
    Executed,
    LabReading,
    PageLoad,
    Performance,
    Replay,
    ServedConnection,
    ServedLoad,
)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a trial of any kind leaves; see ``testbed.way.trial``.

    ``problems`` are what it holds against its own proof, and ``error`` why it did not succeed.
    ``machine`` is what the machine did meanwhile, of a trial in real time.  Of page loads:
    ``hosts`` are the page's by their addresses in the lab, ``connections`` the server's account.
    Of server loads: ``taken_later`` is how many segments each end's kernel had taken once the link
    had been read; ``counters`` are read before that.
    """

    lab: LabReading | None = None
    load: PageLoad | None = None
    replay: Replay | None = None
    served: ServedLoad | None = None
    performed: Performance | None = None
    executed: Executed | None = None
    counters: dict[str, dict[str, int]] | None = None
    hosts: dict[str, str] = field(default_factory=dict)
    connections: tuple[ServedConnection, ...] = ()
    taken_later: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    error: str | None = None
    outcome: Literal["failed", "timeout", "unsupported"] = "failed"
    machine: dict[str, float] = field(default_factory=dict)
