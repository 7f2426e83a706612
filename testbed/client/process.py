"""Process of a client: its log, its time-out, and the named pipe from which it reads its list."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.client.interface import LoadError, LoadTimeoutError

TAIL_BYTES = 2000

READY_S = 30.0
POLL_S = 0.001
AHEAD_NS = 1_000_000_000


def run_logged(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
    good: Sequence[int] = (0,),
    output: Path | None = None,
) -> int:
    """Run ``argv`` to its end and return its exit status, which is one of ``good``.

    Its standard output goes to the file ``output``, or to its log as well.

    Raises:
        LoadTimeoutError: it was still running after ``timeout_s``.
        LoadError: it ended with another status.
    """
    with logged(argv, log=log, env=env, cwd=cwd, output=output) as running:
        return running.end(timeout_s, good)


@dataclass(frozen=True, slots=True)
class Logged:
    """A running process whose words go to a log."""

    argv: Sequence[str]
    child: proc.Process
    log: Path

    def end(self, timeout_s: float, good: Sequence[int] = (0,)) -> int:
        """Wait for its end and return its exit status; raises what ``run_logged`` does."""
        if not _ends_within(self.child.pid, timeout_s):
            raise LoadTimeoutError(
                f"`{' '.join(self.argv)}` did not end within {timeout_s:g} s: {read_tail(self.log)}"
            )
        status = self.child.wait()
        if status not in good:
            output = read_tail(self.log)
            raise LoadError(f"`{' '.join(self.argv)}` ended with status {status}: {output}")
        return status


@contextmanager
def logged(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    output: Path | None = None,
) -> Iterator[Logged]:
    """Start ``argv`` as ``run_logged`` does; the undo ends it."""
    with (
        log.open("wb") as errors,
        nullcontext(errors) if output is None else output.open("wb") as printed,
        proc.started(argv, env=env, cwd=cwd, stdout=printed, stderr=errors) as child,
    ):
        yield Logged(argv, child, log)


def sleep_until(moment_ns: int) -> None:
    """Sleep until ``moment_ns`` of CLOCK_REALTIME; not at all if that is over."""
    time.sleep(max(0.0, (moment_ns - time.time_ns()) / 1e9))


def read_tail(log: Path) -> str:
    """Return the end of a log, for an error message."""
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


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a load: ns since 1970, and ns of the monotonic clock."""

    realtime_ns: int
    monotonic_ns: int


class Feed:
    """The named pipe ``path``, made here; its reader gets text when begun, and then the end."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        path.chmod(0o644)  # the reader may be another user
        self._path = path
        self.start: Start | None = None

    def begin(
        self,
        child: proc.Process,
        wait_until_ns: int | None,
        text: str,
        *,
        ahead: str = "",
        restart: Callable[[], None] | None = None,
    ) -> None:
        """Wait until ``child`` reads and the moment has come, then give it ``text``.

        It gets what is ``ahead`` before that moment; ``restart`` is called at the moment, which is
        then when it returns.  ``start`` stays ``None`` when the child ends, or does not read in
        ``READY_S`` seconds: what it said is in its log.
        """
        if wait_until_ns is not None:
            # A child that is launched at a round instant reads seconds later: not to be polled for.
            sleep_until(wait_until_ns - AHEAD_NS)
        writer = self._open(child)
        if writer is None:
            return
        try:
            with open(writer, "w", encoding="utf-8", closefd=False) as stream:
                stream.write(ahead)
                stream.flush()
                if wait_until_ns is not None:
                    sleep_until(wait_until_ns)
                    if restart is not None:
                        restart()
                self.start = Start(time.time_ns(), time.monotonic_ns())
                stream.write(text)
        except BrokenPipeError:
            self.start = None
        finally:
            os.close(writer)

    def _open(self, child: proc.Process) -> int | None:
        deadline = time.monotonic() + READY_S
        while child.poll() is None and time.monotonic() < deadline:
            try:
                writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no process reads yet
                    raise
                time.sleep(POLL_S)
            else:
                os.set_blocking(writer, True)
                return writer
        return None
