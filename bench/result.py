"""Results of the bench: asked beside measured, as a table for people and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from bench.work import Machine
from testbed.base.errors import StorageError

Verdict = Literal["met", "missed", "reported"]
"""``reported`` is for numbers without a target, and for targets not measured in full."""

STYLES = {"met": "green", "missed": "bold red", "reported": "dim"}


@dataclass(frozen=True, slots=True)
class Result:
    """One asked number beside the measured one.

    ``n`` counts the repetitions behind ``measured``; ``how`` is one sentence.  ``real_time`` says
    that the number depends on the machine and on what else runs.  ``details`` goes to the JSON, and
    ``files``, texts by their names, beside it.
    """

    name: str
    asked: str
    measured: str
    verdict: Verdict
    n: int
    how: str
    real_time: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def judge(within: bool, *, in_full: bool = True) -> Verdict:
    """Return the verdict on a number; one not measured in full can be missed, but not met."""
    if not within:
        return "missed"
    return "met" if in_full else "reported"


def all_met(results: Sequence[Result]) -> bool:
    """Return whether no target was missed."""
    return all(result.verdict != "missed" for result in results)


def table(results: Sequence[Result], machine: Machine) -> Table:
    """Return all results, with the target beside the measured value."""
    shown = Table(title="Numbers to reach", caption=caption(results, machine), show_lines=True)
    for heading in ("what", "asked", "measured", "", "n", "how"):
        shown.add_column(heading, justify="right" if heading == "n" else "left", overflow="fold")
    for result in results:
        shown.add_row(*map(Text, (result.name, result.asked, result.measured)),
                      Text(result.verdict, STYLES[result.verdict]), Text(str(result.n)),
                      Text(result.how))  # fmt: skip
    return shown


def caption(results: Sequence[Result], machine: Machine) -> str:
    """Return the state of the machine in words, and the numbers that it makes unreliable."""
    state = f"{machine.cores} cores, load {machine.load:.2f} before the start"
    real_time = [result.name for result in results if result.real_time]
    if machine.idle or not real_time:
        return state
    return f"{state}: NOT IDLE, so these are too high: {', '.join(real_time)}"


def write_json(
    path: Path, results: Sequence[Result], machine: Machine, now: datetime, quick: bool
) -> tuple[Path, ...]:
    """Write all results, unrounded, and their files beside them; return the written paths.

    Raises:
        StorageError: the file cannot be written.
    """
    document = {"created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "machine": machine.describe(),
                "quick": quick, "results": [asdict(result) for result in results]}  # fmt: skip
    texts = {path: json.dumps(document, indent=2) + "\n"} | {
        path.with_name(f"{path.stem}-{name}"): text
        for result in results
        for name, text in result.files.items()
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; choose another file with -o FILE"
        ) from error
    return tuple(texts)
