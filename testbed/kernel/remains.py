"""What a trial left in its folder, whichever kernel it ran on: console, observation, odd files."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

CONSOLE_TAIL_LINES = 15
CONSOLE_TAIL_BYTES = 16384


def read_end(console: Path) -> str:
    """The end of a console, as text."""
    with console.open("rb") as file:
        file.seek(max(0, console.stat().st_size - CONSOLE_TAIL_BYTES))
        return file.read().decode(errors="replace")


def tail_of(console: str) -> str:
    """Its last lines, for an error message."""
    return "\n".join(console.splitlines()[-CONSOLE_TAIL_LINES:])


def keep_regular_files(out: Path) -> None:
    """Remove what could lead readers elsewhere, left by a hostile trial: links, devices, pipes."""
    for path in out.iterdir():
        if not stat.S_ISREG(path.lstat().st_mode):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def read_seconds(observation: Path) -> float | None:
    """Seconds that the trial took by its own clock; ``None``: it left no observation to read."""
    try:
        return float(json.loads(observation.read_text())["virtual_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
