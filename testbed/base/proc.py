"""Processes, which are started nowhere else: argument lists, time-outs, own process groups.

Every child leads its own process group and is ended by terminate, kill, wait, in that order.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed.base.errors import MissingError, TestbedError
from testbed.base.interrupt import holding

TERM_GRACE_S = 2.0
CANCEL_POLL_S = 0.1
READY_S = 60.0
"""So long a program may take until it does what it was started for."""
READY_POLL_S = 0.01

Process = subprocess.Popen[bytes]
Completed = subprocess.CompletedProcess[str]


class CommandError(TestbedError):
    """A command failed; the message names it, its exit status and the end of its output."""


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = 60.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = True,
    pass_fds: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run ``argv`` to its end and return it with its text output.

    Raises:
        MissingError: the program does not exist.
        CommandError: it failed (with ``check``) or did not end within ``timeout_s``.
    """
    with started(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=pass_fds,
    ) as child:
        try:
            out, err = child.communicate(stdin.encode() if stdin is not None else None, timeout_s)
        except subprocess.TimeoutExpired:
            raise CommandError(f"`{' '.join(argv)}` did not end within {timeout_s:g} s") from None
    completed = subprocess.CompletedProcess(
        list(argv), child.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    )
    if check and completed.returncode != 0:
        tail = (completed.stderr or completed.stdout).strip()[-2000:]
        raise CommandError(f"`{' '.join(argv)}` ended with status {completed.returncode}: {tail}")
    return completed


def run_attached(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run ``argv`` to its end on this process's terminal; return its status and standard output.

    It shares the process group, standard input and standard error: it may ask for a password there,
    and Ctrl-C reaches it, too.  If anything is raised meanwhile, it is asked to terminate and
    waited for as long as that takes: what installs packages must not be killed.

    Raises:
        MissingError: the program does not exist, or may not be run.
    """
    child = None
    try:
        with _starting(argv) as release:
            child = subprocess.Popen(list(argv), stdout=subprocess.PIPE)
        release()
        out = _read_patiently(child)
    except BaseException:
        if child is not None:
            _end_patiently(child)
        raise
    return subprocess.CompletedProcess(list(argv), child.returncode, out.decode(errors="replace"))


def _read_patiently(child: Process) -> bytes:
    """Return all that ``child`` writes to standard output, when it has ended.

    In many short waits: a signal that came just before a long one would be seen at its end only.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=CANCEL_POLL_S)[0]


def _end_patiently(child: Process) -> None:
    """Ask ``child`` to terminate, once, and wait, however often this process is interrupted."""
    is_signalled = False
    while True:
        with suppress(KeyboardInterrupt):
            if not is_signalled:
                is_signalled = True
                child.terminate()
            child.wait()
            return


@contextmanager
def started(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> Iterator[Process]:
    """Start ``argv`` in its own process group; its undo ends the whole group.

    Raises:
        MissingError: the program does not exist, or may not be run.
    """
    child = None
    try:
        with _starting(argv) as release:
            child = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
        release()
        yield child
    finally:
        if child is not None:
            stop(child)


@contextmanager
def _starting(argv: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Say what is wrong if the program cannot be started; hold signals back until it is."""
    try:
        with holding() as release:
            yield release
    except (FileNotFoundError, PermissionError) as error:
        raise MissingError(
            f"cannot start `{argv[0]}`: {error.strerror} ({error.filename}); "
            "run ./run.sh doctor to see what is missing"
        ) from None


class Child:
    """A process started by ``spawned``, with as much of ``subprocess.Popen`` as is needed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status (negative: by a signal); ``None`` while the process runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the process to end and return its exit status.

        ``None``: it still runs after ``timeout`` seconds.
        """
        if self.poll() is None and timeout is not None:
            descriptor = os.pidfd_open(self.pid)
            try:
                if not select.select([descriptor], [], [], timeout)[0]:
                    return None
            finally:
                os.close(descriptor)
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


@contextmanager
def scheduled(policy: int) -> Iterator[None]:
    """Run this thread, and start children, by another policy during the block (sched(7))."""
    before = os.sched_getscheduler(0)
    os.sched_setscheduler(0, policy, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


@contextmanager
def spawned(
    argv: Sequence[str], *, env: Mapping[str, str], descriptors: Mapping[int, int]
) -> Iterator[Child]:
    """Start ``argv`` in its own process group with descriptors of our choice; its undo ends it.

    ``started`` cannot say under which number a child finds a descriptor without running Python
    between fork and exec; posix_spawn(3) can, and copies no page tables of this process.

    Args:
        argv: the command, looked up on the PATH.
        env: its environment.
        descriptors: number in the child -> descriptor here.

    Raises:
        MissingError: the program does not exist, or may not be run.
    """
    copies: dict[int, int] = {}
    try:
        # Clear of the numbers that they are to have, so that none covers another.
        free = max(descriptors) + 1
        for number, descriptor in descriptors.items():
            copies[number] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, free)
        actions = [(os.POSIX_SPAWN_DUP2, copy, number) for number, copy in copies.items()]
        # What Python ignores; see restore_signals of subprocess.Popen.
        usual = [signal.SIGPIPE, signal.SIGXFSZ]
        pid = os.posix_spawnp(
            argv[0], list(argv), dict(env), file_actions=actions, setsid=True, setsigdef=usual
        )
    except (FileNotFoundError, PermissionError) as error:
        raise MissingError(
            f"cannot start `{argv[0]}`: {error.strerror}; "
            "run ./run.sh doctor to see what is missing"
        ) from None
    finally:
        for copy in copies.values():
            os.close(copy)
    child = Child(pid)
    try:
        yield child
    finally:
        stop(child)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """End of a process: its exit status (negative: by a signal) and its tree's CPU seconds."""

    status: int
    cpu_s: float


def wait(
    child: Process, timeout_s: float, cancel: threading.Event, stop: Callable[[], bool] = bool
) -> ProcessExit | None:
    """Wait for ``child``; ``None``: it still runs, and there is no reason to wait any longer.

    The time is up, ``cancel`` is set, or ``stop``, which is asked now and then, says so.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.pidfd_open(child.pid)
    try:
        while not select.select([descriptor], [], [], CANCEL_POLL_S)[0]:
            if cancel.is_set() or time.monotonic() > deadline or stop():
                return None
    finally:
        os.close(descriptor)
    # wait4 rather than Popen.wait: only it gives the CPU time of the whole tree.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return ProcessExit(child.returncode, usage.ru_utime + usage.ru_stime)


def becomes_ready(child: Process, is_ready: Callable[[], bool]) -> bool:
    """Wait until ``is_ready``; ``False``: ``child`` has ended, or took longer than ``READY_S``."""
    deadline = time.monotonic() + READY_S
    while not is_ready():
        if child.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(READY_POLL_S)
    return True


def stop(child: Process | Child) -> None:
    """Terminate, then kill, then wait for the child's whole process group."""
    if child.poll() is None:
        _signal_group(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(TERM_GRACE_S)
    _signal_group(child, signal.SIGKILL)
    child.wait()
    if isinstance(child, Child):
        return
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _signal_group(child: Process | Child, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
