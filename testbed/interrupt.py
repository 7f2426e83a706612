"""Interrupts as a flag that workers look at, instead of an exception in the middle of anything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Interruption:
    """``stop`` tells workers to end at once; ``signal`` is what asked for it, if anything did."""

    stop: threading.Event = field(default_factory=threading.Event)
    signal: signal.Signals | None = None


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn SIGINT, SIGTERM and SIGHUP into ``stop`` for the time of the block.

    Works in the main thread alone, as signal(2) handlers do in Python.
    """
    interruption = Interruption()

    def note(number: int, _frame: FrameType | None) -> None:
        interruption.signal = signal.Signals(number)
        interruption.stop.set()

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
