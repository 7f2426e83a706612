"""Description of commands in the lab: what those ask who plan, run, judge and keep them."""

from __future__ import annotations

from typing import Any

from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.kind import Kind
from testbed.model import CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE
from testbed.model.command import CLIENT


def _commands(spec: LabCommand) -> tuple[str, ...]:
    return (spec.command, spec.peer)


def _complete(chosen: dict[str, Any]) -> dict[str, Any]:
    return chosen | {"client": CLIENT}


KIND = Kind(
    name="command",
    spec=LabCommand,
    measured=Executed,
    kept_as="executed",
    kept_words="What became of a command in the lab; null of others.",
    no_draw="a seed affects loss_pct and what a command makes of {seed}: ask for one repetition",
    needed=("page", "command"),
    files=(CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE, OUTPUT_FILE, ERROR_FILE),
    has_rules=True,
    commands=_commands,
    complete=_complete,
)
