"""Spec of a command in the lab: a page load's, in which the command runs by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from testbed.model.asked import Condition
from testbed.model.knob import WRITTEN_DOWN, Knob

SINCE = 3
End = Literal["client", "server"]
Place = Literal["client", "server", "lab"]


@dataclass(frozen=True, slots=True)
class LabCommand(Condition):
    """A command in the lab of a page load: its link, its TCP settings, its servers."""

    at: Annotated[Place, Knob(
        "The end of the link that the command runs at, or outside of all hosts of the lab.",
        label="At", since=SINCE,
        shown=WRITTEN_DOWN,
    )] = "client"  # fmt: skip
    peer: Annotated[str, Knob(
        "A command that runs at the other end meanwhile, such as the server of a measuring tool.",
        label="At the other end", allowed="a command in words, as a shell splits them",
        since=SINCE,
        shown="command",
    )] = ""  # fmt: skip
    kind: Literal["command"] = "command"
    """What tells it from other kinds where it is stored."""
