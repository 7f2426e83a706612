"""Description of commands in the lab: what those ask who plan, run, judge and keep them."""

from __future__ import annotations

from typing import Any

from testbed.kinds.command.measurement import ERROR_FILE, OUTPUT_FILE, Executed
from testbed.kinds.command.spec import LabCommand
from testbed.kinds.kind import Kind, describe_draws
from testbed.model import CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE, LinkSpec
from testbed.model.command import CLIENT


def _no_draw() -> str:
    own = "what a command makes of {seed}"
    return f"{describe_draws(LinkSpec, own)}: ask for one repetition"


def _commands(spec: LabCommand) -> tuple[str, ...]:
    return (spec.command, spec.peer)


def _complete(chosen: dict[str, Any]) -> dict[str, Any]:
    return chosen | {"client": CLIENT}


KIND = Kind(
    name="command",
    package=__package__,
    spec=LabCommand,
    measured=Executed,
    kept_as="executed",
    kept_words="What became of a command in the lab; null of others.",
    trial="a command of yours in the lab of a page load",
    no_draw=_no_draw,
    needed=("page", "command"),
    files=(CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE, OUTPUT_FILE, ERROR_FILE),
    has_rules=True,
    commands=_commands,
    complete=_complete,
)
