"""Description of page loads: what those ask who plan, run, judge and keep them."""

from __future__ import annotations

from typing import Any

from testbed.kinds.kind import Kind, describe_draws
from testbed.kinds.page_load.measurement import loads_differ
from testbed.model import (
    CAPTURE_FILE,
    HAR_FILE,
    KEYS_FILE,
    SERVER_CAPTURE_FILE,
    SERVER_LOG_FILE,
    Condition,
    PageLoad,
)
from testbed.model.command import CLIENT


def _no_draw() -> str:
    return f"{describe_draws(Condition)} alone: set one of them, or ask for one repetition"


def _commands(condition: Condition) -> tuple[str, ...]:
    return (condition.command,)


def _complete(chosen: dict[str, Any]) -> dict[str, Any]:
    """A command is of the client that runs it; another client has nothing of it."""
    return chosen if chosen["client"] == CLIENT else chosen | {"command": None}


def _words(load: PageLoad) -> str:
    return f"plt {load.plt_ms:.1f} ms"


KIND = Kind(
    name="page_load",
    package=__package__,
    spec=Condition,
    measured=PageLoad,
    kept_as="load",
    kept_words="The load as the client observed it; null where it did not end.",
    trial="a page that is loaded",
    no_draw=_no_draw,
    needed=("page", "client"),
    files=(CAPTURE_FILE, SERVER_CAPTURE_FILE, HAR_FILE, SERVER_LOG_FILE, KEYS_FILE),
    has_rules=True,
    short=True,
    commands=_commands,
    complete=_complete,
    differ=loads_differ,
    words=_words,
)
