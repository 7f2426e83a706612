"""A client's process: its output goes to ``client.log``, its end is waited for until a time-out."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.base import proc
from testbed.client.protocol import LoadError, LoadTimeoutError

TAIL_BYTES = 2000


def run_logged(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
    good: Sequence[int] = (0,),
    begin: Callable[[proc.Process], None] | None = None,
) -> int:
    """Run ``argv`` to its end and return its exit status, which is one of ``good``.

    ``begin`` is called once the process has been started; ``timeout_s`` counts from its return.

    Raises:
        LoadTimeoutError: it was still running after ``timeout_s``.
        LoadError: it ended with another status.
    """
    with (
        log.open("wb") as output,
        proc.started(argv, env=env, cwd=cwd, stdout=output, stderr=output) as child,
    ):
        if begin is not None:
            begin(child)
        if not _ends_within(child.pid, timeout_s):
            raise LoadTimeoutError(
                f"`{' '.join(argv)}` did not end within {timeout_s:g} s: {read_tail(log)}"
            )
        status = child.wait()
    if status not in good:
        raise LoadError(f"`{' '.join(argv)}` ended with status {status}: {read_tail(log)}")
    return status


def read_tail(log: Path) -> str:
    """The end of a log, for an error message."""
    text = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
    return text or "(no output)"


def _ends_within(pid: int, timeout_s: float) -> bool:
    # A descriptor wakes once, at the end; Popen.wait(timeout) would wake every 50 ms for nothing.
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)
