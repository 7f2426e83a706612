"""Whether the machine is idle enough for numbers of real time (getloadavg(3))."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from typing import Any

# Of each core, over the last minute: beyond it, wall-clock and CPU times tell of others' work.
IDLE_LOAD_PER_CORE = 0.25


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores that may be used, and the load average of the last minute before the bench."""

    cores: int
    load: float

    @property
    def idle(self) -> bool:
        """Whether nobody else was using much of it."""
        return self.load <= IDLE_LOAD_PER_CORE * self.cores

    def describe(self) -> dict[str, Any]:
        """For the JSON."""
        return {**asdict(self), "idle": self.idle, "platform": platform.platform()}


def read_machine() -> Machine:
    """Ask the machine now."""
    return Machine(len(os.sched_getaffinity(0)), os.getloadavg()[0])
