"""Keeper of a test run: the process that pytest was started as, while pytest goes on in a child.

Whatever a test starts and does not end becomes the keeper's when its parents are gone
(PR_SET_CHILD_SUBREAPER, prctl(2)), and ends with the run: after its last test, an interrupt, a
signal or a crash.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testbed.base.proc import TERM_GRACE_S

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GIVE_UP_S = 30.0
"""A process that outlives SIGKILL by so much is another user's, or in the kernel."""
POLL_S = 0.02


def keep() -> None:
    """Go on in a child; the caller's own process keeps it, and ends as it did."""
    libc, keeper = ctypes.CDLL(None), os.getpid()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        # The kernel's answer to a keeper that was killed: an interrupt, after which tests undo.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != keeper:
            os.kill(os.getpid(), signal.SIGINT)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells the child as well
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGINT))
    code = os.waitstatus_to_exitcode(_await(child))
    _end_all()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _await(child: int) -> int:
    """Wait until ``child`` has ended, and meanwhile for all that became the keeper's."""
    while True:
        ended, status = os.wait()
        if ended == child:
            return status


def _end_all() -> None:
    """Terminate what is left, and what that leaves; kill what does not end."""
    begun, number = time.monotonic(), signal.SIGTERM
    told = set[int]()
    while time.monotonic() < begun + GIVE_UP_S:
        if time.monotonic() > begun + TERM_GRACE_S:
            number, told = signal.SIGKILL, set()
        for pid in set(_children()) - told:
            told.add(pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(POLL_S)


def _children() -> Iterator[int]:
    """Yield the processes whose parent is this one."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                yield int(stat.parent.name)
