"""File locks (flock(2)): one process works while others wait, and say so.

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path, waiting: str, write: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock ``file``, which is made if need be, for the time of the block.

    Where another process holds it, ``write`` is called with ``waiting`` first.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            write(waiting)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def is_locked_now(file: Path) -> Iterator[bool]:
    """Yield whether the lock ``file`` is held for the time of the block: nobody else had it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
