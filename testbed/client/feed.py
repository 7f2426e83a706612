"""A list that a program waits for: its start is over before the clock of the load begins.

The list is a named pipe (fifo(7)): opening it succeeds when the program has come as far as reading.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc

READY_S = 30.0
POLL_S = 0.001


@dataclass(frozen=True, slots=True)
class Start:
    """When a load began: ns since 1970, and ns of the monotonic clock."""

    realtime_ns: int
    monotonic_ns: int


class Feed:
    """The named pipe ``path``, made here; its reader gets ``text`` when begun, and then the end."""

    def __init__(self, path: Path, text: str) -> None:
        os.mkfifo(path)
        path.chmod(0o644)  # the reader may be another user
        self._path = path
        self._text = text
        self.start: Start | None = None

    def begin(self, child: proc.Process, wait_until_ns: int | None) -> None:
        """Wait until ``child`` reads and the moment has come, then give it the list.

        ``start`` stays ``None`` when the child ends, or does not read in ``READY_S`` seconds: what
        it said is in its log.
        """
        writer = self._open(child)
        if writer is None:
            return
        try:
            if wait_until_ns is not None:
                time.sleep(max(0.0, (wait_until_ns - time.time_ns()) / 1e9))
            self.start = Start(time.time_ns(), time.monotonic_ns())
            with open(writer, "w", encoding="utf-8", closefd=False) as stream:
                stream.write(self._text)
        except BrokenPipeError:
            self.start = None
        finally:
            os.close(writer)

    def _open(self, child: proc.Process) -> int | None:
        deadline = time.monotonic() + READY_S
        while child.poll() is None and time.monotonic() < deadline:
            try:
                writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads yet
                    raise
                time.sleep(POLL_S)
            else:
                os.set_blocking(writer, True)
                return writer
        return None
