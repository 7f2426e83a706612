"""Think time of the server: how long a request waits, by nginx's echo module, for its answer.

Source: echo-nginx-module, directives echo_read_request_body, echo_sleep and echo_exec;
docs/decisions/replay-server.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testbed.archive.failures import UNANSWERED
from testbed.archive.reading import Entry
from testbed.base.errors import MissingError
from testbed.base.seeding import think_factor
from testbed.server.quoting import quote

MODULE = "lib/nginx/modules/ngx_http_echo_module.so"
"""Where Debian has it below a ``usr``; each build of nginx has its own."""
PACKAGE = "libnginx-mod-http-echo"
SILENCE_S = 86_400.0
"""How long a request waits that had no answer when the recording ended."""
PATIENCE_S = 30.0
"""And, beyond the recorded time, one that the page gives up: it may do that later."""


@dataclass(frozen=True, slots=True)
class Think:
    """A think time of ``mean_ms``, above 0, that ``spread_pct`` and ``seed`` vary by request."""

    mean_ms: float
    spread_pct: float = 0.0
    seed: int = 0

    def delay_ms(self, request: str) -> int:
        """Return how long ``request`` (``METHOD URL``) waits; nginx counts whole ms, from 1."""
        factor = think_factor(self.seed, f"server {request}", self.spread_pct)
        return max(1, round(self.mean_ms * factor))

    def directives(self, request: str, uri: str) -> str:
        """Return a location's directives: await all of ``request``, think, and go on at ``uri``.

        That is an internal redirect, after which the method is the client's.
        """
        delay_s = f"{self.delay_ms(request) / 1000:.3f}"
        return f"echo_read_request_body; echo_sleep {delay_s}; echo_exec {quote(uri)};"


def silence_s(entry: Entry) -> float | None:
    """Return how long a request waits before it fails; ``None``: not at all."""
    if entry.is_answered or entry.fails not in UNANSWERED:
        return None
    if entry.dur_ms is None:
        return SILENCE_S
    return entry.dur_ms / 1000 + (PATIENCE_S if entry.fails == "aborted" else 0.001)


def load_directive(usr: Path) -> str:
    """Return the directive, before all blocks, that loads the echo module of ``usr``'s nginx."""
    return f"load_module {quote(str(usr / MODULE))};\n"


def require_module(usr: Path) -> None:
    """Check that the nginx of ``usr`` has its echo module.

    Raises:
        MissingError: its module is not installed.
    """
    if not (usr / MODULE).is_file():
        raise MissingError(
            "server_think_ms, and a page recorded with silence, need nginx's echo module, and "
            f"there is no {usr / MODULE}: "
            f"install the package {PACKAGE}"
        )
