"""Observations that are altered: what a real trial wrote down, judged with something else in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.kernel.run.interface import RawResult
from testbed.model import OBSERVATION_FILE, Record
from testbed.way.judge import conclude

PAGE = "tum-website"
KNOBS = {"page": PAGE, "client": "graph", "rtt_ms": 20}
COMMAND = f"""\
kind = "command"
page = "{PAGE}"
client = "command"
command = "curl -sS -o {{out}}/page {{url}}"
"""
Seen = dict[str, Any]
Alter = Callable[[Seen], object]


@dataclass(frozen=True)
class Done:
    """A trial that was performed, and what it left."""

    record: Record
    folder: Path
    archive: str | None

    def judge(self, alter: Alter, tmp_path: Path, archive: str | None = None) -> Record:
        """The record of the trial, had it left what ``alter`` makes of its observation."""
        out = tmp_path / "out"
        shutil.copytree(self.folder / "trials" / self.record.trial_id, out)
        path = out / OBSERVATION_FILE
        seen = json.loads(path.read_text())
        alter(seen)
        path.write_text(json.dumps(seen))
        raw = RawResult("ended", "", "", None, path, archive or self.archive)
        return conclude(self.record.trial, raw, out, self.record.environment, 1)


def given(*names: str, to: object) -> Alter:
    """Sets what is at a path of an observation."""

    def alter(seen: Seen) -> None:
        *path, last = names
        for name in path:
            seen = seen[name]
        seen[last] = to

    return alter


def without(*names: str) -> Alter:
    """Takes away what is at a path of an observation."""

    def alter(seen: Seen) -> None:
        *path, last = names
        for name in path:
            seen = seen[name]
        del seen[last]

    return alter
