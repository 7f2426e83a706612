"""Who types at a program's terminal."""

from __future__ import annotations

import os
import pty
import select
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.base import places, proc

TYPED_S = 120.0


@dataclass(frozen=True)
class Typist:
    """Who sits at the terminal whose other end is given, of the program ``child``."""

    terminal: int
    child: proc.Process

    def read_until(self, text: str, after: str = "") -> str:
        """What it says until it says ``text``, after it has said ``after``."""
        said, deadline = "", time.monotonic() + TYPED_S
        while said.find(text, said.find(after)) < 0 and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 1.0)[0]:
                try:
                    said += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:  # nobody is there any more
                    break
        return said

    def type(self, text: str) -> None:
        """Type."""
        os.write(self.terminal, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Draw the terminal larger or smaller."""
        termios.tcsetwinsize(self.terminal, (rows, columns))

    def perform(self, line: str, prompt: str) -> str:
        """Type a line; return what is said to it before the next prompt."""
        self.type(f"{line}\r")
        said = self.read_until(prompt, after=line)  # a prompt is drawn anew in another size
        return said.partition(line)[2].rpartition(prompt)[0].strip()


@contextmanager
def typing(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Typist]:
    """Start a program at a terminal of its own, in this work tree."""
    ours, theirs = pty.openpty()
    try:
        with proc.started(
            argv, cwd=places.ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        ) as child:
            os.close(theirs)
            yield Typist(ours, child)
    finally:
        os.close(ours)
