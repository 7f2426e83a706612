"""Programs of ours beside nginx: what it cannot answer by itself they do, over a socket of files.

Each runs in the server's folder, where ``NAME.json`` is its order and ``NAME.err`` what it says;
it makes ``NAME.ready`` once it listens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import LabError


@contextmanager
def started_beside(
    program: str, name: str, order: object, folder: Path, tied: tuple[str, ...] = ()
) -> Iterator[None]:
    """Run the module ``program`` of this package in ``folder`` for the time of the block.

    ``tied`` are words that have it end with its starter.

    Raises:
        LabError: it ended, or did not listen in time.
    """
    (folder / f"{name}.json").write_text(json.dumps(order), "utf-8")
    file = Path(__file__).with_name(f"{program}.py")
    argv = (*tied, sys.executable, "-I", "-S", str(file), f"{name}.json")
    errors = folder / f"{name}.err"
    with (
        errors.open("wb") as log,
        proc.started(argv, cwd=folder, stdout=log, stderr=log) as child,
    ):
        if not proc.becomes_ready(child, (folder / f"{name}.ready").exists):
            said = errors.read_text(errors="replace")[-2000:].strip()
            raise LabError(f"{program} is not ready: {said}")
        yield
