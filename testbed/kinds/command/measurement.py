"""Measurement of a command in the lab: what became of it."""

from __future__ import annotations

from dataclasses import dataclass

OUTPUT_FILE, ERROR_FILE, PEER_FILE = "command.out", "command.err", "peer.log"


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of a command in the lab; its output is beside its capture."""

    exit_status: int
    """Its exit status; 128 and the number of the signal that ended it."""
    duration_ms: float
    """Time from its start to its end, on the clock of the trial's kernel."""
    output_bytes: int
    """Its standard output, which is in `command.out`."""
    error_bytes: int
    """Its standard error, which is in `command.err`."""
    peer_status: int | None = None
    """The exit status of what ran at the other end, negative where a signal ended it; null where
    nothing ran there, or where it still ran and was ended with the trial."""
