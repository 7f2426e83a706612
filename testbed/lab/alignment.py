"""Round starts in virtual time: what happened before leaves no trace in a page load.

Lab, capture and client start each at a round instant, from random numbers that are started anew
from the trial's seed.  So another process, another import, another environment variable or some
milliseconds more before them change no packet of the load (docs/decisions/virtual-kernel.md).
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from testbed.base.seeding import start_offset_ns
from testbed.model import Condition, Trial

ALIGN_NS = 10_000_000_000
LAUNCH_NS = 10_000_000_000
AGE_NS = 100_000_000_000
"""A client that was launched early loads at a multiple of this age, however long labs take."""
CALLS = 1000
"""More than the price of one in ns, so that the clock's own call does not count."""
READY_NS = 1_000_000_000  # for what comes before: until then it may take more or less time
RNDCLEARPOOL = 0x5206
FORGOTTEN_NS, FORGOTTEN_MOST_NS = 1_000_000_000, 1_066_000_000
"""How long ``forget`` takes: a second, up to the next multiple of 64 ms (kernel/time/timer.c: what
waits for 512 to 4095 jiffies ends at a multiple of 64; of them there are 1000 a second), and on to
a whole ms.
"""
RESTART_NS = 2_000_000_000
"""More than ``forget`` takes."""


@dataclass(frozen=True, slots=True)
class Moments:
    """When a client's process starts and when its load does, in ns of CLOCK_REALTIME."""

    launch_ns: int
    load_ns: int


def choose_moments(
    trial: Trial, launched_ns: int | None = None, lead_s: float | None = None
) -> Moments:
    """The moments of ``trial``: the next round instant, later by what its seed says.

    With neighbours it is so late that the first of them can begin ``lead_s`` seconds before it.

    What ``start_spread_ms`` adds moves both, so that a client has no longer to wait than without;
    one that was launched before the trial was known, at ``launched_ns``, has to.  In real time
    nothing is aligned and nothing added: a machine spreads by itself.
    """
    offset_ns = start_offset_ns(trial.seed, trial.condition_as(Condition).start_spread_ms)
    ready_ns = READY_NS + (0 if lead_s is None else RESTART_NS + round(lead_s * 1e9))
    if launched_ns is None:
        launch_ns = next_round(time.time_ns() + ready_ns) + offset_ns
        return Moments(launch_ns, launch_ns + LAUNCH_NS)
    ages = max(1, -(-(time.time_ns() + ready_ns - launched_ns) // AGE_NS))
    return Moments(launched_ns, launched_ns + ages * AGE_NS + offset_ns)


def idle(idle_s: float) -> None:
    """Wait for the first round instant that is ``idle_s`` seconds away or more, and ``forget``."""
    now_ns = time.time_ns()
    time.sleep((next_round(now_ns + round(idle_s * 1e9)) - now_ns) / 1e9)
    forget()


def next_launch() -> int:
    """Return the next round instant for which there is time to get ready."""
    return next_round(time.time_ns() + READY_NS)


def begin_stage() -> None:
    """Wait for a round instant and start the guest's random numbers anew (root in a guest).

    The sleep ends a little late, by how much depends on what was before.  RNDCLEARPOOL, by our
    patch 0009 of the kernel, therefore also sleeps a second more, so that what still ran comes to
    rest, forgets the scheduler's debts, and goes on to the next millisecond, to the nanosecond.
    """
    _end_a_thread()
    now_ns = time.time_ns()
    time.sleep((next_round(now_ns + READY_NS) - now_ns) / 1e9)
    forget()


def forget() -> None:
    """Start the guest's random numbers anew, at a moment that is a second later, to the ns."""
    with Path("/dev/urandom").open("rb", buffering=0) as device:
        fcntl.ioctl(device, RNDCLEARPOOL)


def forget_by(moment_ns: int) -> None:
    """Start the guest's random numbers anew, and return at a later moment."""
    forget()
    time.sleep(max(0, moment_ns - time.time_ns()) / 1e9)


def _end_a_thread() -> None:
    """Have a thread end, so that it is not the client whose end is the guest's first.

    Linux 7 keeps all process ids, those of threads too, in a table (fs/pidfs.c).  It is made with
    room for 64, shrinks to what is needed when the first one goes, and grows again when a browser
    starts; for each new size the kernel draws a random number.
    """
    thread = Thread(target=bool)
    thread.start()
    thread.join()


def read_call_ns() -> int:
    """Return what a system call costs here, in whole ns, by how long a thousand of them take."""
    taken_ns = []
    for _ in range(3):  # whatever else runs in one of them takes longer
        began_ns = time.monotonic_ns()
        for _ in range(CALLS):
            os.getppid()
        taken_ns.append(time.monotonic_ns() - began_ns)
    return min(taken_ns) // CALLS


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
