"""Draws of a seed in a load: when it starts, and what computing costs.

Each is computed here again from the trial's seed, and held against what happened: the start by the
capture's clock, the price of computing by how long system calls took.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.base.seeding import start_offset_ns, system_call_ns
from testbed.capture.flows import first_packet_ns
from testbed.lab.alignment import ALIGN_NS, FORGOTTEN_MOST_NS, FORGOTTEN_NS
from testbed.model.command import CLIENT as COMMAND
from testbed.proof.check import check
from testbed.proof.evidence import Evidence
from testbed.proof.load_time import held_ms

FIRST_MS = 2.0
"""What a client may take until its first packet: measured were 0.2 to 0.4."""
BUSY_NS = 2_000_000
"""Where computing costs time, who has something to do gets the guest's one processor within this:
0.9 ms at most in 144 loads of Table 1."""
ITS_PROCESS = ("wget2",)
"""Clients that start with their process, at the moment itself and not behind ``forget``."""


@check("start", "virtual_time", "load", "condition", "capture")
def check_start(seen: Evidence) -> Iterator[str]:
    """The client's first packet left at the moment that the trial's seed draws."""
    condition, first_ns = seen.condition, first_packet_ns(seen.capture, seen.clients)
    if first_ns is None or condition.client == COMMAND:  # which may do other things before
        return
    least_ns = most_ns = 0
    if seen.neighbour_account is None and condition.client not in ITS_PROCESS:
        least_ns, most_ns = FORGOTTEN_NS, FORGOTTEN_MOST_NS
    drawn_ns = start_offset_ns(seen.trial.seed, condition.start_spread_ms)
    half_ns = ALIGN_NS // 2
    late_ns = (first_ns - drawn_ns - least_ns + half_ns) % ALIGN_NS - half_ns
    if not 0 <= late_ns <= most_ns - least_ns + (FIRST_MS + held_ms(seen)) * 1e6:
        yield (
            f"start_spread_ms = {condition.start_spread_ms:g}: the first packet left "
            f"{late_ns / 1e6:.3f} ms after the moment that the seed {seen.trial.seed} draws"
        )


@check("price of computing", "virtual_time", "load", "condition")
def check_computing(seen: Evidence) -> Iterator[str]:
    """A system call took as long as the trial's seed draws, and none without a draw."""
    drawn_ns, told_ns = _call_ns(seen), seen.observed.call_ns
    if told_ns != drawn_ns:
        yield (
            f"jitter = {seen.condition.jitter}: a system call took {told_ns} ns, the seed "
            f"{seen.trial.seed} draws {drawn_ns}"
        )


def busy_ns(seen: Evidence) -> int:
    """Return how long the guest's one processor may be another's."""
    return BUSY_NS if _call_ns(seen) else 0


def _call_ns(seen: Evidence) -> int:
    return system_call_ns(seen.trial.seed) if seen.condition.jitter == "computing" else 0
