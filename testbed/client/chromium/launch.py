"""The browser's process: started with its DevTools pipe, closed in order, and ended in any case."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from testbed.base import proc
from testbed.client.chromium.devtools import ClosedError, DevTools, Event, LateError, RefusedError
from testbed.client.chromium.traffic import EVENTS
from testbed.client.interface import LoadError, LoadTimeoutError
from testbed.client.process import read_tail

PIPE = "--remote-debugging-pipe"
COMMANDS, MESSAGES = 3, 4
"""The descriptors that the browser has its pipes under."""
CLOSE_S = 60.0
END_S = 2.0


class Browser(NamedTuple):
    """A running browser; ``process`` is what was started, below which it may be."""

    devtools: DevTools
    process: proc.Child
    log: Path

    @property
    def proc(self) -> Path:
        """The /proc of the browser's process namespace, whose process ids it tells."""
        return Path("/proc", str(self.process.pid), "root", "proc")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors in the block into ones that say how the browser ended and what it printed.

        Raises:
            LoadTimeoutError: it did not answer in time.
            LoadError: it ended, or refused a command.
        """
        try:
            yield
        except LateError as error:
            output = read_tail(self.log)
            raise LoadTimeoutError(f"chromium: {error} in time: {output}") from None
        except ClosedError:
            end, output = _describe_end(self.process), read_tail(self.log)
            raise LoadError(f"chromium: {end}: {output}") from None
        except RefusedError as error:
            output = read_tail(self.log)
            raise LoadError(f"chromium: the browser refused {error}: {output}") from None

    def close(self) -> list[Event]:
        """Have it end in order, wait until it has, and return the events until then.

        What it has not done by then is lost.
        """
        self.devtools.send("Browser.close")
        deadline = time.monotonic() + CLOSE_S
        try:
            while self.devtools.receive(deadline):
                pass
        except ClosedError:
            self.process.wait(CLOSE_S)
        return self.devtools.take()


@contextmanager
def running(
    argv: Sequence[str], env: Mapping[str, str], log: Path, *, real_time: bool = True
) -> Iterator[Browser]:
    """Start a browser by ``argv``, which has ``PIPE`` in it; what it says goes to ``log``.

    In virtual time, where nobody gains by being first, none of its threads interrupts another by
    waking (SCHED_BATCH): it would wait at once for what the interrupted one holds.

    Raises:
        MissingError: the program does not exist.
    """
    with ExitStack() as undo:
        output = undo.enter_context(log.open("wb"))
        nothing = undo.enter_context(Path(os.devnull).open("rb"))
        theirs_in, ours_out = os.pipe()
        undo.callback(os.close, ours_out)
        ours_in, theirs_out = os.pipe()
        undo.callback(os.close, ours_in)
        descriptors = {0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()}
        descriptors |= {COMMANDS: theirs_in, MESSAGES: theirs_out}
        try:
            with nullcontext() if real_time else proc.scheduled(os.SCHED_BATCH):
                child = undo.enter_context(proc.spawned(argv, env=env, descriptors=descriptors))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        yield Browser(DevTools(ours_out, ours_in, EVENTS), child, log)


def _describe_end(child: proc.Child) -> str:
    status = child.wait(END_S)
    if status is None:
        return "the browser closed its DevTools pipe and goes on"
    return f"the browser ended too early, with status {status}"
