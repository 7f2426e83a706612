"""Round starts in virtual time: what happened before leaves no trace in a page load.

The lab is built, and the client started, each at a round instant and from random numbers that are
started anew from the trial's seed.  So another process, another import or another environment
variable before them changes no packet of the load (docs/decisions/kernel-guest.md).
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.model import Trial
from testbed.variation import start_offset_ns

ALIGN_NS = 10_000_000_000
LAUNCH_NS = 10_000_000_000
READY_NS = 1_000_000_000  # for starting the capture and whatever else comes before the client
RNDCLEARPOOL = 0x5206
TIMER_SLACK = Path("/proc/self/timerslack_ns")


@dataclass(frozen=True, slots=True)
class Moments:
    """When a client's process starts and when its load does, in ns of CLOCK_REALTIME."""

    launch_ns: int
    load_ns: int


def choose_moments(trial: Trial) -> Moments:
    """The moments of ``trial``: the next round instant, later by what its seed says.

    What ``start_spread_ms`` adds moves both, so that a client has no longer to wait than without.
    In real time nothing is aligned and nothing added: a machine spreads by itself.
    """
    offset_ns = start_offset_ns(trial.seed, trial.condition.start_spread_ms)
    launch_ns = next_round(time.time_ns() + READY_NS) + offset_ns
    return Moments(launch_ns, launch_ns + LAUNCH_NS)


def begin_lab() -> None:
    """Wait for a round instant and start the guest's random numbers anew (root in a guest)."""
    await_round()
    with open("/dev/urandom", "rb", buffering=0) as device:
        fcntl.ioctl(device, RNDCLEARPOOL)
    draw_secrets()


def await_round() -> None:
    """Sleep until the next round instant, to the nanosecond."""
    # Else the kernel may wake us up to 50 us later, together with whatever other timer is near.
    TIMER_SLACK.write_text("1")
    time.sleep((next_round(time.time_ns()) - time.time_ns()) / 1e9)
    TIMER_SLACK.write_text("0")  # the default again


def draw_secrets() -> None:
    """Open a connection on loopback: the kernel draws what numbers and ports come from only then.

    Those secrets (net/core/secure_seq.c, inet_hashtables.c) are the whole guest's and stay: drawn
    here, they do not depend on how many random numbers the building of the lab takes.
    """
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        server, _ = listener.accept()
        server.close()
        client.recv(1)


def next_round(now_ns: int) -> int:
    """The first round instant that is not yet over."""
    return -(-now_ns // ALIGN_NS) * ALIGN_NS
