"""Temporary folders, each locked by the process that made it, so that ``clean`` finds the others.

Only a process that was killed leaves one: the lock (flock(2)) ends with it, the folder does not.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

Purpose = Literal[
    "bench",
    "boot",
    "determinism",
    "doctor",
    "jail",
    "kernel",
    "recipe",
    "record",
    "serve",
    "stage",
    "verify",
]
_NAME = re.compile(rf"firstflight-({'|'.join(get_args(Purpose))})-[a-z0-9_]{{8}}")


@contextmanager
def scratch_folder(purpose: Purpose, within: Path | None = None) -> Iterator[Path]:
    """Yield an empty folder for the time of the block; ``None``: among temporary files."""
    with tempfile.TemporaryDirectory(prefix=f"firstflight-{purpose}-", dir=within) as name:
        folder = Path(name)
        with _opened(folder) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield folder


def find_scratch(temporary: Path) -> Iterator[tuple[Path, bool]]:
    """Yield this user's scratch folders in ``temporary``, and whether a process uses each."""
    for folder in sorted(temporary.glob("firstflight-*")):
        with suppress(FileNotFoundError):  # it ended meanwhile
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if ours and _NAME.fullmatch(folder.name):
                yield folder, _is_locked(folder)


def _is_locked(folder: Path) -> bool:
    with _opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
