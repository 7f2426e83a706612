"""Chance in a load: its start and the price of computing are those that its seed draws."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.base.seeding import start_offset_ns, system_call_ns
from testbed.model.command import CLIENT as COMMAND
from testbed.proof.check import check, say_unshown
from testbed.proof.evidence import Evidence

SECOND_NS, ROUND_NS = 1_000_000_000, 10_000_000_000
LATE_MS = 64.0 + 5.0
"""A sleep of a second may be late by 64 ms (kernel/time/timer.c), a client's first packet by 5."""
CLOSE_NS = 2.0
"""By how much the mean price of 1,000 system calls may be off."""


@check("start", "condition", "capture")
def check_start(seen: Evidence) -> Iterator[str]:
    """A load started as long after a round instant as its seed says.

    In real time nothing is added, and a command sends when it likes, though not before.
    """
    asked = seen.condition
    if not asked.start_spread_ms or not seen.virtual_time or seen.line_shared:
        return
    offset_ns = start_offset_ns(seen.trial.seed, asked.start_spread_ms)
    windows = seen.visits if seen.has("load") else ()
    first = (
        windows[0].first_packet_ns(seen.capture, seen.clients)
        if windows
        else next((p.at_ns for p in seen.capture.packets if p.source in seen.clients), None)
    )
    if first is None:
        yield say_unshown("start_spread_ms", asked.start_spread_ms)
        return
    if asked.client == COMMAND:
        early = first % ROUND_NS < offset_ns
        late_ms = 0.0
    else:
        since_ns = (first - offset_ns) % SECOND_NS
        early, late_ms = False, since_ns / 1e6
    if early or late_ms > LATE_MS:
        yield (
            f"the first packet left {first % SECOND_NS / 1e6:.3f} ms after a round instant, the "
            f"seed says {offset_ns / 1e6:.3f} ms"
        )


@check("price of computing", "condition")
def check_price(seen: Evidence) -> Iterator[str]:
    """A system call cost what the seed says, by the clock of the load's kernel.

    Computing on a machine's own kernel varies anyway.
    """
    if seen.condition.jitter == "none" or not seen.virtual_time:
        return
    told, due = seen.observed.system_call_ns, system_call_ns(seen.trial.seed)
    if told is None:
        yield say_unshown("jitter", seen.condition.jitter)
    elif abs(told - due) > CLOSE_NS:
        yield f"a system call cost {told:.1f} ns, the seed says {due} ns"
