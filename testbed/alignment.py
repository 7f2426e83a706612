"""When a load starts in virtual time: at a round instant, or as much later as its seed says."""

from __future__ import annotations

import time

from testbed.model import Trial
from testbed.variation import start_offset_ns

ALIGN_NS = 10_000_000_000
LAUNCH_NS = 5_000_000_000


def choose_start(trial: Trial) -> int:
    """The CLOCK_REALTIME in ns at which the load of ``trial`` starts.

    What ``start_spread_ms`` adds is waited for here, so that a client has no longer to wait than
    without.  In real time nothing is aligned and nothing added: a machine spreads by itself.
    """
    offset_ns = start_offset_ns(trial.seed, trial.condition.start_spread_ms)
    start_ns = next_start(time.time_ns()) + offset_ns
    if offset_ns:
        time.sleep(offset_ns / 1e9)
    return start_ns


def next_start(now_ns: int) -> int:
    """A round instant far enough away for a browser to start: what happened before has no trace."""
    return -(-(now_ns + LAUNCH_NS) // ALIGN_NS) * ALIGN_NS
