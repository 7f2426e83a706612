"""What a trial asks of a client, and what every client can do.

The recorded page is described by its shape only, so that this room does not import the page room.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from testbed.errors import TrialError
from testbed.model import PageLoad


class LoadError(TrialError):
    """The client could not load the page; the message names the client and the log's end."""


class LoadTimeoutError(LoadError):
    """The load did not end within the order's time."""


class Resource(Protocol):
    """One recorded request, as the page archive gives it (times in ms, sizes in bytes)."""

    @property
    def url(self) -> str:
        """Absolute URL without a fragment."""

    @property
    def method(self) -> str:
        """HTTP method."""

    @property
    def status(self) -> int:
        """Recorded HTTP status."""

    @property
    def body_size(self) -> int:
        """Transferred body bytes."""

    @property
    def mime(self) -> str:
        """Media type without parameters."""

    @property
    def parent(self) -> str | None:
        """URL of the resource that names this one; ``None`` for the root."""

    @property
    def how(self) -> str:
        """How it was found: root, parser, frame, css, script or redirect."""

    @property
    def gap_ms(self) -> float | None:
        """Recorded start minus the parent's recorded end; may be negative."""

    @property
    def dur_ms(self) -> float | None:
        """Recorded duration of the request."""


class Page(Protocol):
    """A recorded page: its root and its requests in recorded order."""

    @property
    def name(self) -> str:
        """Name of the page."""

    @property
    def root_url(self) -> str:
        """URL that a load starts with."""

    @property
    def entries(self) -> Sequence[Resource]:
        """All recorded requests."""


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """One page load to be done.

    ``prefix`` runs a command inside the client's network namespace.  ``tfo`` says whether Fast
    Open is under test.  ``think_time`` is "recorded" or "none" (graph client).  ``bundle`` holds
    ``native/`` and ``js/``; ``scratch`` is private, writable and empty; ``out`` keeps the
    client's files.  ``wait_until_ns`` is the CLOCK_REALTIME at which the load starts, ``None`` for
    at once; what can be started before that moment is.  ``user`` is the user id that ``prefix``
    switches to, ``None`` when it does not.
    """

    archive: Page
    prefix: tuple[str, ...]
    tfo: bool
    think_time: str
    bundle: Path
    scratch: Path
    out: Path
    timeout_s: float
    wait_until_ns: int | None = None
    user: int | None = None


class Client(Protocol):
    """A program that loads a page."""

    @property
    def name(self) -> str:
        """Name in the registry, in configurations and in results."""

    def load(self, order: LoadOrder) -> PageLoad:
        """Load the page once, with empty caches, and write ``load.har`` to ``order.out``.

        Raises:
            LoadTimeoutError: it did not end in time.
            LoadError: the client itself failed; failed requests are no error but a result.
        """


def client_environment(order: LoadOrder) -> dict[str, str]:
    """Environment of a client's processes: the same whoever runs it, with no user's settings."""
    return {
        "HOME": str(order.scratch),
        "LANG": "C.UTF-8",
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": str(order.scratch),
        "TZ": "UTC",
    }
