"""Signals: SIGINT, SIGTERM and SIGHUP end every command with status 130, and no traceback.

What they do depends on what is going on: while the program starts nothing is begun and nothing to
undo, so it is left at once; then they raise KeyboardInterrupt, which passes every block's undo; and
while trials run they are a flag that workers look at, instead of an exception in the middle of
anything.  A SIGHUP that nohup(1) has the program ignore stays ignored.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from testbed.base.errors import EXIT_INTERRUPTED, StorageError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 0.01
_holding: list[bool] = []
"""For each block that holds signals back whether one came; empty where none does."""


class Interruption:
    """``stop`` asks workers to end at once; ``signal`` is what asked for it, if anything did."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.signal: signal.Signals | None = None


class SignalInterrupt(KeyboardInterrupt):
    """The interrupt that a signal raises.

    A class of its own: where a bare KeyboardInterrupt passes exec() of text, as when a dataclass is
    made, CPython remembers it as unhandled and later ends the process by SIGINT, caught or not.
    """


def leave_on_signals() -> None:
    """End the process at once on any signal from here on, with a message.

    ``run.sh`` starts Python with signals blocked, so that none comes before this.
    """
    _handle(_leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


@contextmanager
def raising() -> Iterator[None]:
    """Let every signal raise KeyboardInterrupt for the time of the block, as Ctrl-C does anyway.

    A library that was in the middle of something may turn it into an error of its own (pydantic
    does so while it builds a schema): an error after a signal is the interrupt.
    """
    signalled = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signalled.set()
        if _holding:
            _holding[-1] = True
        elif _is_swallowing(frame):
            swallowed(number)
        else:
            raise SignalInterrupt(number)

    with _sending_again() as swallowed, _handling(interrupt), _unswallowed(swallowed):
        try:
            yield
        except Exception as error:
            if signalled.is_set():
                raise SignalInterrupt from error
            raise


@contextmanager
def _sending_again() -> Iterator[Callable[[int], None]]:
    """Yield what sends a signal to the main thread once more, a little later.

    It may itself be interrupted anywhere, by the next signal, and be called again: so it takes no
    lock, as ``threading.Thread.start`` would.
    """
    main = threading.main_thread().ident
    lock, over = threading.Lock(), threading.Event()

    def send(number: int) -> None:
        time.sleep(AGAIN_S)
        with lock:
            if main is not None and not over.is_set():
                signal.pthread_kill(main, number)

    def send_later(number: int) -> None:
        _thread.start_new_thread(send, (number,))

    try:
        yield send_later
    finally:
        with lock:
            over.set()


@contextmanager
def _unswallowed(swallowed: Callable[[int], None]) -> Iterator[None]:
    """Tell ``swallowed`` of each signal whose exception can go nowhere.

    In a callback of the interpreter's own, as importlib has them for weak references, CPython
    prints an exception and goes on (sys.unraisablehook).
    """
    usual = sys.unraisablehook

    sys.unraisablehook = partial(_swallow, usual=usual, swallowed=swallowed)
    try:
        yield
    finally:
        sys.unraisablehook = usual


def _swallow(
    unraisable: UnraisableHookArgs,
    usual: Callable[[UnraisableHookArgs], None],
    swallowed: Callable[[int], None],
) -> None:
    if isinstance(unraisable.exc_value, SignalInterrupt):
        swallowed(*unraisable.exc_value.args)
    else:
        usual(unraisable)


def _is_swallowing(frame: FrameType | None) -> bool:
    """Return whether this is a place where an exception would go nowhere, too."""
    while frame is not None:
        if frame.f_code is _swallow.__code__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def holding() -> Iterator[Callable[[], None]]:
    """Delay the interrupt of ``raising``, and yield a function that raises it after the block.

    An interrupt while a process is being started would lose track of that process.  Only the main
    thread gets signals; in other threads nothing is delayed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    was_signalled: list[bool] = []

    def release() -> None:
        if any(was_signalled):
            raise SignalInterrupt

    _holding.append(False)
    try:
        yield release
    finally:
        was_signalled.append(_holding.pop())


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn every signal into ``stop`` for the time of the block.

    What a signal stops may end in an error of its own: an error after a signal is the interrupt,
    unless results could not be written.  Works in the main thread alone, as signal(2) handlers do
    in Python.
    """
    interruption = Interruption()

    def note(number: int, _frame: FrameType | None) -> None:
        interruption.signal = signal.Signals(number)
        interruption.stop.set()

    with _handling(note):
        try:
            yield interruption
        except Exception as error:
            if interruption.signal is not None and not isinstance(error, StorageError):
                raise SignalInterrupt from error
            raise


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    _handle(handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _handle(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
