"""Signals: SIGINT, SIGTERM and SIGHUP end every command with status 130, and no traceback.

What they do depends on what is going on: while the program starts nothing is begun and nothing to
undo, so it is left at once; then they raise KeyboardInterrupt, which passes every block's undo; and
while trials run they are a flag that workers look at, instead of an exception in the middle of
anything.  A SIGHUP that nohup(1) has the program ignore stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from testbed.base.errors import EXIT_INTERRUPTED

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
    came = threading.Event()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.set()
        if _holding:
            _holding[-1] = True
        else:
            raise SignalInterrupt(number)

    with _handling(interrupt), _unswallowed():
        try:
            yield
        except Exception as error:
            if came.is_set():
                raise SignalInterrupt from error
            raise


@contextmanager
def _unswallowed() -> Iterator[None]:
    """Send a signal once more where its exception can go nowhere.

    In a callback of the interpreter's own, as importlib has them for weak references, CPython
    prints an exception and goes on (sys.unraisablehook).
    """
    usual = sys.unraisablehook
    main = threading.main_thread().ident

    def send_again(unraisable: UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, SignalInterrupt) or main is None:
            usual(unraisable)
            return
        # From another thread, later: here it would come in the same callback.
        timer = threading.Timer(AGAIN_S, signal.pthread_kill, (main, *unraisable.exc_value.args))
        undo.callback(timer.cancel)
        timer.start()

    with ExitStack() as undo:
        sys.unraisablehook = send_again
        try:
            yield
        finally:
            sys.unraisablehook = usual


@contextmanager
def holding() -> Iterator[Callable[[], None]]:
    """Hold back what ``raising`` raises for the time of the block, and yield what raises it then.

    While a process is started, an exception would lose the only one who knows of it.  Signals come
    to the main thread alone; in others there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[bool] = []

    def release() -> None:
        if any(came):
            raise SignalInterrupt

    _holding.append(False)
    try:
        yield release
    finally:
        came.append(_holding.pop())


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn every signal into ``stop`` for the time of the block.

    Works in the main thread alone, as signal(2) handlers do in Python.
    """
    interruption = Interruption()

    def note(number: int, _frame: FrameType | None) -> None:
        interruption.signal = signal.Signals(number)
        interruption.stop.set()

    with _handling(note):
        yield interruption


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
