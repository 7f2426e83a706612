"""Captures that a results folder keeps: of all trials, of fragile ones, or of none."""

from __future__ import annotations

from pathlib import Path

from testbed.model import Proof, Record
from testbed.results.manifest import KeepCaptures

TIMEOUTS = "TcpExtTCPTimeouts"


def drop_captures(folder: Path, record: Record, keep: KeepCaptures) -> None:
    """Remove from a trial's ``folder`` the captures that are not to be kept.

    Its record has their digests in any case.

    Raises:
        OSError: one cannot be removed.
    """
    if not is_dropped(record, keep):
        return
    for path in folder.glob("*.pcap"):
        path.unlink()


def is_dropped(record: Record, keep: KeepCaptures) -> bool:
    """Return whether the captures of a trial are not to be kept."""
    return keep == "none" or (keep == "fragile" and not is_fragile(record))


def is_fragile(record: Record) -> bool:
    """Return whether a trial did not end well, or waited for a timer: who reads it looks closer."""
    proof = record.proof
    if record.outcome != "ok" or proof is None:
        return True
    return bool(proof.waits and proof.waits.longest_ns) or count_timeouts(proof) > 0


def count_timeouts(proof: Proof) -> int:
    """Return how many retransmission time-outs both ends of a load counted."""
    return sum(end.get(TIMEOUTS, 0) for end in (proof.client_counters, proof.server_counters))
