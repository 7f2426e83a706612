"""Heartbeat of what takes long: its last message again, whenever nothing was said for a while.

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from testbed.base.units import format_duration

WRITE_EVERY_S = 15.0
"""The longest time without a line."""
Write = Callable[[str], None]


@contextmanager
def repeating(write: Write, every_s: float = WRITE_EVERY_S) -> Iterator[Write]:
    """Yield ``write``; its last message is repeated, with its age, while the block takes long.

    It is repeated after each ``every_s`` seconds without a new message.
    """
    over, latest = Event(), [("", time.monotonic())]

    def first(message: str) -> None:
        latest[:] = [(message, time.monotonic())]
        write(message)

    def again() -> None:
        repeated, repeats = latest[0], 0
        while not over.wait(max(0.0, repeated[1] + (repeats + 1) * every_s - time.monotonic())):
            if latest[0] != repeated:
                repeated, repeats = latest[0], 0
                continue
            repeats += 1
            message, since = repeated
            if message:
                write(f"{format_duration(time.monotonic() - since)} so far: {message}")

    thread = Thread(target=again, daemon=True)
    thread.start()
    try:
        yield first
    finally:
        over.set()
        thread.join()
