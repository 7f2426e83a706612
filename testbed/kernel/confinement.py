"""A command in bubblewrap, and the certain end of everything inside."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from testbed.base import proc

END_S = 10.0


@contextmanager
def confined(
    argv: Sequence[str],
    output: IO[bytes],
    *,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Iterator[proc.Process]:
    """Start a command whose first word is ``bwrap``; after the block nobody is left inside.

    To end bubblewrap would end the processes inside, too, but a moment later.  Their first one is
    ended instead: bubblewrap waits for that, and that one for all others (pid_namespaces(7)).
    """
    told, telling = os.pipe()
    try:
        # The option's place is after the name of the program.
        command = (argv[0], "--info-fd", str(telling), *argv[1:])
        with ExitStack() as undo:
            try:
                starting = proc.started(
                    command, env=env, stdout=output, stderr=output, pass_fds=(telling, *pass_fds)
                )
                child = undo.enter_context(starting)
            finally:
                os.close(telling)
            try:
                yield child
            finally:
                _end_inside(child, told)
    finally:
        os.close(told)


def _end_inside(child: proc.Process, told: int) -> None:
    if child.poll() is not None:
        return
    with open(told, closefd=False) as stream:
        text = stream.read()
    if text:  # else it did not come to a first process
        with suppress(ProcessLookupError):
            os.kill(json.loads(text)["child-pid"], signal.SIGKILL)
        proc.wait(child, END_S, threading.Event())
