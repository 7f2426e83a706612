"""Think time of the server: how long a request waits, by nginx's echo module, for its answer.

Source: echo-nginx-module, directives echo_read_request_body, echo_sleep and echo_exec;
docs/decisions/replay-server.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from testbed.archive.failures import UNANSWERED
from testbed.archive.reading import Archive, Entry
from testbed.base.errors import MissingError
from testbed.base.seeding import think_factor
from testbed.model import Condition
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
    """A think time of ``mean_ms`` that ``spread_pct`` and ``seed`` vary by request.

    Hosts in ``by_host`` have another; requests (``METHOD URL``) in ``recorded`` their own, in ms.
    """

    mean_ms: float
    spread_pct: float = 0.0
    seed: int = 0
    by_host: Mapping[str, float] = field(default_factory=dict)
    recorded: Mapping[str, float] = field(default_factory=dict)

    @property
    def longest_ms(self) -> float:
        """How long it takes at the most."""
        most_ms = max(self.mean_ms, *self.by_host.values(), *self.recorded.values(), 0.0)
        return most_ms * (1 + self.spread_pct / 100)

    def of(self, host: str) -> Think:
        """Return the think time of a host's server."""
        if host not in self.by_host:
            return self
        return replace(self, mean_ms=self.by_host[host], recorded={})

    def delay_ms(self, request: str) -> int:
        """Return how long ``request`` (``METHOD URL``) waits; nginx counts whole ms, from 1."""
        mean_ms = self.recorded.get(request, self.mean_ms)
        factor = think_factor(self.seed, f"server {request}", self.spread_pct)
        return max(1, round(mean_ms * factor)) if mean_ms else 0

    def directives(self, request: str, uri: str) -> str:
        """Return a location's directives: await all of ``request``, think, and go on at ``uri``.

        That is an internal redirect, after which the method is the client's.
        """
        delay_ms = self.delay_ms(request)
        pause = f"echo_sleep {delay_ms / 1000:.3f}; " if delay_ms else ""
        return f"echo_read_request_body; {pause}echo_exec {quote(uri)};"


def think_of(condition: Condition, seed: int, page: Callable[[], Archive]) -> Think | None:
    """Return how long servers of the page think before each answer; ``None``: not at all."""
    listed = (each.rpartition(" ") for each in condition.think_by_host.split(", ") if each)
    by_host = {host: float(ms) for host, _, ms in listed}
    recorded: dict[str, float] = {}
    if condition.server_think == "recorded":
        recorded = {f"{e.method} {e.url}": e.wait_ms or 0.0 for e in page().entries}
    if not (condition.server_think_ms or by_host or recorded):
        return None
    spread_pct = condition.think_spread_pct
    return Think(condition.server_think_ms, spread_pct, seed, by_host, recorded)


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
            "a think time, and a page recorded with silence, need nginx's echo module, and there "
            f"is no {usr / MODULE}: "
            f"install the package {PACKAGE}"
        )
