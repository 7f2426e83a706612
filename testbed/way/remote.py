"""Remote end of a run on a cluster: what a worker of whatever Python does with a batch.

It is imported on the worker from the worker's own repository (standard library only), starts
``./run.sh batch`` there, and tells what comes while it runs.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from testbed.base import proc
from testbed.base.errors import TestbedError
from testbed.base.places import ROOT

_TAIL_BYTES = 2000
Tell = Callable[[dict[str, Any]], None]
Answer = tuple[list[tuple[str, bytes]], str]
"""The entries of the trials that ended, by id, and why the others did not; empty: all did."""


def perform_batch(request: bytes, tell: Tell) -> Answer:
    """Have ``request`` performed by this machine's own ``run.sh``.

    ``tell`` is given each frame's line, without the bytes of entries.
    """
    entries: list[tuple[str, bytes]] = []
    asking, asks = os.pipe()
    answers, answering = os.pipe()
    with (
        tempfile.TemporaryFile() as said,
        os.fdopen(asking, "rb") as stdin,
        os.fdopen(answering, "wb") as stdout,
        os.fdopen(answers, "rb") as answer,
        os.fdopen(asks, "wb", buffering=0) as kept_open,
    ):
        words = [str(ROOT / "run.sh"), "batch"]
        try:
            with proc.started(words, cwd=ROOT, stdin=stdin, stdout=stdout, stderr=said) as child:
                stdin.close()
                stdout.close()
                args = (kept_open, request)
                threading.Thread(target=_write, args=args, daemon=True).start()
                problem = _read(answer, entries, tell)
                status = child.wait()
        except (TestbedError, OSError) as error:
            return entries, str(error)
        if status != 0:
            problem = _read_end(said) or f"./run.sh batch ended with status {status}"
    return entries, problem


def _write(asking: IO[bytes], request: bytes) -> None:
    view = memoryview(request)
    with suppress(OSError):  # it ended before it read all; its status tells
        while view:
            view = view[asking.write(view) :]


def _read(answering: IO[bytes], entries: list[tuple[str, bytes]], tell: Tell) -> str:
    """Gather the frames of an answer; return what is wrong with it."""
    try:
        while line := answering.readline():
            says = json.loads(line)
            content = answering.read(int(says["bytes"]))
            if len(content) != says["bytes"]:
                return "the answer ends in the middle of a frame"
            if says["kind"] == "entry":
                entries.append((str(says["trial_id"]), content))
            tell(says)
    except (ValueError, KeyError, TypeError) as error:
        return f"the answer cannot be read: {error}"
    return ""


def _read_end(said: IO[bytes]) -> str:
    """Return the errors at the end of what was said."""
    said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = said.read().decode(errors="replace").splitlines()
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return "; ".join(errors or lines[-3:])
