"""What a trial left in its folder, whichever kernel it ran on: console, observation, odd files.

Whoever ran the trial is not trusted: it may have left links to other places, devices, programs
that run as another user, folders that are thousands deep.  Nothing is asked or changed by a path
that it could have made to lead elsewhere (path_resolution(7), proc_pid_fd(5)).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from testbed.base.units import format_bytes

CONSOLE_TAIL_LINES = 15
CONSOLE_TAIL_BYTES = 16384
FILE_MODE, FOLDER_MODE = 0o644, 0o755
MOST_BYTES = 4 << 30
MOST_FILES = 4096
"""Bounds of what a trial may leave: a capture, a HAR and a few logs are some dozens of MiB."""
BLOCK_BYTES = 512  # of st_blocks, whatever the file system (stat(3type))


def read_end(console: IO[bytes]) -> str:
    """The end of a console, as text; ``console`` is open since before the trial."""
    console.seek(max(0, os.fstat(console.fileno()).st_size - CONSOLE_TAIL_BYTES))
    return console.read().decode(errors="replace")


def tail_of(console: str) -> str:
    """Its last lines, for an error message."""
    return "\n".join(console.splitlines()[-CONSOLE_TAIL_LINES:])


def read_excess(out: Path) -> str:
    """What a trial has left in ``out`` that no trial would, and that may fill the disk; or ``""``.

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
    taken = set(_names(folder))
    waiting = list(taken)
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
                place = next(one for one in free if one not in taken)
                os.rename(child, place, src_dir_fd=inner, dst_dir_fd=folder)
                waiting.append(place)
        os.rmdir(name, dir_fd=folder)


def _own(descriptor: int, mode: int) -> None:
    # In this order: another owner takes away what a mode and capabilities(7) of a file grant.
    os.chown(_path(descriptor), os.geteuid(), os.getegid())
    _path(descriptor).chmod(mode)


@contextmanager
def _opened(name: str, folder: int) -> Iterator[tuple[int, int]]:
    """The very file that ``name`` is, whatever kind it has and whoever may read it; its mode."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor, os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def _path(descriptor: int) -> Path:
    """A path for calls that take no descriptor of the kind that opens nothing (open(2), O_PATH)."""
    return Path(f"/proc/self/fd/{descriptor}")


def _names(folder: int) -> list[str]:
    return [path.name for path in _path(folder).iterdir()]


def read_seconds(observation: Path) -> float | None:
    """Seconds that the trial took by its own clock; ``None``: it left no observation to read."""
    try:
        return float(json.loads(observation.read_text())["virtual_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
