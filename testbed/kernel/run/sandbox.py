"""Sandbox of a trial, whichever kernel it runs on: its time, and its results made safe.

What ran inside is not trusted: it may have left links to other places, devices, programs that run
as another user, folders that are thousands deep.  Nothing is asked or changed by a path that it
could have made to lead elsewhere (path_resolution(7), proc_pid_fd(5)).
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from testbed.base import proc
from testbed.base.units import format_bytes
from testbed.kernel.run.interface import InterruptedTrial, RawResult, Status
from testbed.model import OBSERVATION_FILE, Cost, Trial

CONSOLE_FILE = "console.log"

CONSOLE_TAIL_LINES = 15
CONSOLE_TAIL_BYTES = 16384
FILE_MODE, FOLDER_MODE = 0o644, 0o755
MOST_BYTES = 4 << 30
MOST_FILES = 4096
"""Bounds of what a trial may leave: a capture, a HAR and a few logs are some dozens of MiB."""
BLOCK_BYTES = 512  # of st_blocks, whatever the file system (stat(3type))


def run_trial(
    start: Callable[[IO[bytes]], AbstractContextManager[proc.Process]], out: Path, limit_s: float,
    cancel: threading.Event,
) -> tuple[proc.ProcessExit | None, str]:  # fmt: skip
    """Run what ``start`` starts, and return its end, as ``proc.wait`` does, and its console's end.

    ``start`` takes the file for its output, the console in ``out``.
    """
    # Read by the file that it was opened as: the trial may have put another in its place.
    with (out / CONSOLE_FILE).open("w+b") as console:
        with start(console) as child:
            ended = proc.wait(child, limit_s, cancel, lambda: bool(read_excess(out)))
        return ended, read_end(console)


def gather_result(
    trial: Trial, what: str, out: Path, ended: proc.ProcessExit | None, console: str, *,
    started_s: float, limit_s: float, cancel: threading.Event, panicked: bool = False,
) -> RawResult:  # fmt: skip
    """Make ``out`` safe to read, and return how ``what`` ("the guest", "the trial") ended.

    ``started_s`` is its start by the monotonic clock, ``limit_s`` how long it might have taken.

    Raises:
        InterruptedTrial: ``cancel`` was set before it ended.
    """
    excess = read_excess(out)
    wall_s = time.monotonic() - started_s
    keep_regular_files(out)
    if ended is None and cancel.is_set():
        raise InterruptedTrial(f"trial {trial.id} was interrupted")
    observation = out / OBSERVATION_FILE
    inside_s = read_seconds(observation)
    status: Status = "failed"
    if excess:
        message = f"{what} {excess}"
    elif ended is None:
        status, message = "timeout", f"{what} did not end within {limit_s:g} s"
    elif panicked:
        status, message = "panicked", f"{what}'s kernel panicked"
    elif inside_s is None:
        message = f"{what} left no observation (status {ended.status})"
    else:
        status, message = "ended", ""
    tail = "\n".join(console.splitlines()[-CONSOLE_TAIL_LINES:])
    return RawResult(status=status, message=message, console_tail="" if status == "ended" else tail,
                     cost=None if ended is None else Cost(ended.cpu_s, wall_s, inside_s or 0.0),
                     observation=observation if status == "ended" else None)  # fmt: skip


def read_end(console: IO[bytes]) -> str:
    """Return the end of a console, as text; ``console`` is open since before the trial."""
    console.seek(max(0, os.fstat(console.fileno()).st_size - CONSOLE_TAIL_BYTES))
    return console.read().decode(errors="replace")


def read_excess(out: Path) -> str:
    """Return what a trial left in ``out`` that none should, and that may fill the disk; or ``""``.

    There is no folder among what a trial leaves, so nothing is counted that lies deeper.
    """
    size = 0
    with os.scandir(out) as entries:
        for number, entry in enumerate(entries, 1):
            with suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
            if entry.is_dir(follow_symlinks=False):
                return "made a folder in its results"
            if number > MOST_FILES:
                return f"left more than {MOST_FILES} files"
            if size > MOST_BYTES:
                return f"left more than {format_bytes(MOST_BYTES)}"
    return ""


def keep_regular_files(out: Path) -> None:
    """Make ``out`` what a reader expects: regular files of ours, and nothing else.

    Links, folders, devices, sockets and pipes are removed.  Files get mode 0644 and ``out`` 0755,
    and both the owner and group of this process: none is a program that runs as another user.
    """
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _own(folder, FOLDER_MODE)
        _remove_folders(folder)
        for name in _names(folder):
            with _opened(name, folder) as (file, mode):
                if stat.S_ISREG(mode):
                    _own(file, FILE_MODE)
                else:
                    os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _remove_folders(folder: int) -> None:
    """Remove all folders in ``folder``, however deep: those in them come up first."""
    free = (f".removing-{number}" for number in count())
    used_names = set(_names(folder))
    waiting = list(used_names)
    while waiting:
        name = waiting.pop()
        with _opened(name, folder) as (inner, mode):
            if not stat.S_ISDIR(mode):
                continue
            _path(inner).chmod(0o700)
            for child in _names(inner):
                with _opened(child, inner) as (deeper, kind):
                    if not stat.S_ISDIR(kind):
                        os.unlink(child, dir_fd=inner)
                        continue
                    _path(deeper).chmod(0o700)
                place = next(candidate for candidate in free if candidate not in used_names)
                os.rename(child, place, src_dir_fd=inner, dst_dir_fd=folder)
                waiting.append(place)
        os.rmdir(name, dir_fd=folder)


def _own(descriptor: int, mode: int) -> None:
    # In this order: another owner takes away what a mode and capabilities(7) of a file grant.
    os.chown(_path(descriptor), os.geteuid(), os.getegid())
    _path(descriptor).chmod(mode)


@contextmanager
def _opened(name: str, folder: int) -> Iterator[tuple[int, int]]:
    """Open the very file that ``name`` is, of whatever kind; yield its mode, too."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor, os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def _path(descriptor: int) -> Path:
    """Return a path for calls that take no descriptor of O_PATH (open(2))."""
    return Path(f"/proc/self/fd/{descriptor}")


def _names(folder: int) -> list[str]:
    return [path.name for path in _path(folder).iterdir()]


def read_seconds(observation: Path) -> float | None:
    """Read how many seconds a trial took by its own clock; ``None``: it left no observation."""
    try:
        return float(json.loads(observation.read_text())["virtual_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
