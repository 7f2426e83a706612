"""Runs as a user starts them, and what must be equal whatever machines they were on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

from testbed.base import places, proc

QUICK = "configs/quick.toml"
SAME = ("records.jsonl", "table.csv", "summary.json")
"""What says nothing of the machine or the day."""
RUN_S = 500


def start(*words: str, environment: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """``./run.sh WORDS``, in the work tree."""
    return proc.run(
        ("./run.sh", *words),
        cwd=places.ROOT,
        env=os.environ | (environment or {}),
        check=False,
        timeout_s=RUN_S,
    )


def assert_same(folder: Path, alone: Path) -> None:
    """Both are results of one plan, equal to the byte."""
    different = [
        name for name in SAME if (folder / name).read_bytes() != (alone / name).read_bytes()
    ]
    assert different == []
