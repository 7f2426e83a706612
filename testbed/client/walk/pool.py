"""Chrome's limits on connections, per origin and in all, and what waits for one.

Source: Chromium's net/socket/client_socket_pool_manager.cc (6 per group, 256 in all) and
transport_client_socket_pool.cc (late binding; the idle socket used last is taken first).
"""

from __future__ import annotations

from heapq import heappop, heappush

from testbed.client.walk.connection import Connection
from testbed.client.walk.fetch import Fetch

PER_ORIGIN = 6
IN_ALL = 256

UNRESOLVED, RESOLVING, RESOLVED = 0, 1, 2


class Origin:
    """One host and port: its connections, and its fetches by priority, then by discovery."""

    __slots__ = ("_queue", "_sequence", "address", "connecting", "host", "idle", "open", "port",
                 "state", "tls")  # fmt: skip

    def __init__(self, host: str, port: int, tls: bool) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self.state = UNRESOLVED
        self.address: str | None = None
        self.idle: list[Connection] = []  # the one used last is the last one
        self.connecting = 0
        self.open = 0
        self._queue: list[tuple[int, int, Fetch]] = []
        self._sequence = 0

    def add(self, fetch: Fetch) -> None:
        """Let ``fetch`` wait for a connection."""
        self._sequence += 1
        heappush(self._queue, (-fetch.node.priority, self._sequence, fetch))

    def take(self) -> Fetch:
        """The fetch whose turn it is."""
        return heappop(self._queue)[2]

    @property
    def waiting(self) -> int:
        """Number of fetches that wait."""
        return len(self._queue)

    def take_idle(self) -> Connection | None:
        """A free connection: one that has been used before one that has not, newest first."""
        for index in range(len(self.idle) - 1, -1, -1):
            if self.idle[index].used:
                return self.idle.pop(index)
        return self.idle.pop(0) if self.idle else None

    @property
    def may_open(self) -> bool:
        """Whether a fetch waits that no connection under way will serve, and the limit allows."""
        return self.waiting > self.connecting and self.open < PER_ORIGIN
