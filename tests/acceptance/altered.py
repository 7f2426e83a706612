"""Observations that are altered: what a real trial wrote down, judged with something else in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.capture.packets import read_capture
from testbed.kernel.run.interface import RawResult
from testbed.model import CAPTURE_FILE, OBSERVATION_FILE, Record
from testbed.model.trace import Trace
from testbed.runner.judge import conclude
from tests.capture.packets import write_frames

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
Frames = Callable[[list[bytearray]], object]
"""Changes the frames of a capture, the times of which stay."""


@dataclass(frozen=True)
class Done:
    """A trial that was performed, and what it left."""

    record: Record
    folder: Path
    archive: str | None
    traces: Mapping[str, Trace] = field(default_factory=dict)
    built: Path | None = None

    def judge(
        self,
        alter: Alter,
        tmp_path: Path,
        archive: str | None = None,
        *,
        frames: Frames | None = None,
        capture_of: Done | None = None,
    ) -> Record:
        """The record of the trial, had it left what ``alter`` makes of its observation.

        ``frames`` changes its capture; ``capture_of`` has another trial's instead.
        """
        out = tmp_path / "out"
        shutil.copytree(self.folder / "trials" / self.record.trial_id, out)
        if capture_of is not None:
            trial = capture_of.folder / "trials" / capture_of.record.trial_id
            shutil.copy(trial / CAPTURE_FILE, out / CAPTURE_FILE)
        if frames is not None:
            captured = read_capture(out / CAPTURE_FILE).packets
            changed = [bytearray(packet.frame) for packet in captured]
            frames(changed)
            times = [packet.at_ns for packet in captured]
            write_frames(out / CAPTURE_FILE, zip(times, map(bytes, changed), strict=True))
        path = out / OBSERVATION_FILE
        seen = json.loads(path.read_text())
        alter(seen)
        path.write_text(json.dumps(seen))
        raw = RawResult("ended", "", "", None, path, archive or self.archive, self.traces,
                        self.built)  # fmt: skip
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
