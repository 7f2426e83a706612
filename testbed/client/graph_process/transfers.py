"""Transfers of a page load: name lookups, connections within Chrome's limits, responses."""

from __future__ import annotations

import selectors
import time
from heapq import heappop, heappush

from testbed.client.graph_process.connection import HttpConnection
from testbed.client.graph_process.fetch import Fetch
from testbed.client.graph_process.resolver import Resolver
from testbed.client.graph_process.response import ProtocolError

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Callable

    from testbed.client.graph_process.tls import Trust

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

PER_ORIGIN = 6
IN_ALL = 256
UNRESOLVED, RESOLVING, RESOLVED = 0, 1, 2


class Transfers:
    """Transfers of all fetches; their progress is reported by two calls."""

    def __init__(
        self,
        after: Callable[[float, Callable[[], None]], None],
        progressed: Callable[[Fetch], None],
        ended: Callable[[Fetch], None],
        fast_open: bool,
        trust: Trust | None,
    ) -> None:
        """Read /etc.

        Args:
            after: calls a function after a number of seconds.
            progressed: called when more of a response has arrived, its last part included.
            ended: called before that when a response is complete, or when a fetch has failed.
            fast_open: whether connections open by Fast Open.
            trust: for https origins.
        """
        self._progressed = progressed
        self._ended = ended
        self._fast_open = fast_open
        self._trust = trust
        self._origins: dict[tuple[str, int, int], OriginPool] = {}
        self._connections = 0
        self._open = 0
        # select(2) takes microseconds; epoll_wait(2) would round think times up to milliseconds.
        self._selector = selectors.SelectSelector()
        self._resolver = Resolver(self._selector, after)

    def add(self, fetch: Fetch) -> None:
        """Ask for ``fetch`` as soon as the limits allow."""
        node = fetch.node
        origin = self._pool(node.host, node.port, node.tls)
        origin.add(fetch)
        self._serve(origin)

    def preconnect(self, host: str, port: int, tls: bool, right: bool) -> None:
        """Open a connection before anything is asked; what a wrong guess opens is never used."""
        origin = self._pool(host, port, tls, 0 if right else len(self._origins))
        origin.early += 1
        self._serve(origin)

    def _pool(self, host: str, port: int, tls: bool, guess: int = 0) -> OriginPool:
        """Return the pool of a host, or that of a wrong ``guess``, which is alone in it."""
        key = (host, port, guess)
        if key not in self._origins:
            self._origins[key] = OriginPool(host, port, tls)
        return self._origins[key]

    def run(self, wait_s: float) -> None:
        """Wait for what arrives next, at the longest ``wait_s``, and deal with it."""
        for key, events in self._selector.select(wait_s):
            # An event before this one may have closed the socket, and given its number away.
            present = self._selector.get_map().get(key.fd)
            if present is not None and present.fileobj is key.fileobj:
                key.data(events)

    def close(self) -> None:
        """Close the connections that are free."""
        for origin in self._origins.values():
            for connection in origin.idle:
                connection.socket.close()

    def fail(self, fetch: Fetch, error: str) -> None:
        """End ``fetch`` without a response."""
        fetch.error = error
        fetch.ended = time.monotonic()
        self._ended(fetch)

    # Names

    def _resolve(self, origin: OriginPool) -> None:
        origin.state = RESOLVING
        self._resolver.resolve(
            origin.host,
            lambda address: self._resolved(origin, address),
            lambda error: self._unresolved(origin, error),
        )

    def _resolved(self, origin: OriginPool, address: str) -> None:
        origin.state, origin.address = RESOLVED, address
        self._serve(origin)

    def _unresolved(self, origin: OriginPool, error: str) -> None:
        origin.state, origin.early = UNRESOLVED, 0
        while origin.waiting:
            self.fail(origin.take(), f"cannot resolve {origin.host}: {error}")

    # Connections

    def _serve(self, origin: OriginPool) -> None:
        """Give free connections to what waits, and open more as far as the limits allow."""
        if origin.state == UNRESOLVED:
            self._resolve(origin)
        while origin.state == RESOLVED and origin.early:
            origin.early -= 1
            self._connect(origin, early=True)
        while origin.state == RESOLVED and origin.waiting:
            connection = origin.take_idle()
            if connection is None:
                if not origin.may_open or not self._make_room() or not self._connect(origin):
                    return
                continue
            fetch = origin.take()
            fetch.sent = time.monotonic()
            fetch.connection, fetch.server = connection.number, origin.address
            try:
                connection.start(fetch)
            except OSError as error:
                self._lose(origin, connection, str(error))
                continue
            fetch.response = connection.response
            self._watch(origin, connection)

    def _make_room(self) -> bool:
        """Make room for a connection, by closing an idle one if need be; return if there is."""
        if self._open < IN_ALL:
            return True
        for origin in self._origins.values():
            if origin.idle:
                self._close(origin, origin.idle.pop(0))
                return True
        return False

    def _connect(self, origin: OriginPool, *, early: bool = False) -> bool:
        address = (origin.address or "", origin.port)
        self._connections += 1
        try:
            tls = self._trust.open(origin.host) if origin.tls and self._trust else None
            # Without a request there is only a hello to open it with.
            fast_open = self._fast_open and not (early and tls is None)
            connection = HttpConnection(address, self._connections, fast_open, tls)
        except OSError as error:
            if early:
                return False
            self.fail(origin.take(), f"cannot connect: {error}")
            return origin.waiting > 0
        origin.open += 1
        self._open += 1
        if connection.ready:
            origin.idle.append(connection)
        else:
            origin.connecting += 1
            self._watch(origin, connection)
        return True

    def _watch(self, origin: OriginPool, connection: HttpConnection) -> None:
        events = WRITE if connection.wants_write else READ
        registration = self._selector.get_map().get(connection.socket)
        if registration is None:
            self._selector.register(
                connection.socket,
                events,
                lambda ready_events: self._ready(origin, connection, ready_events),
            )
        elif registration.events != events:
            self._selector.modify(connection.socket, events, registration.data)

    def _ready(self, origin: OriginPool, connection: HttpConnection, events: int) -> None:
        try:
            if not connection.ready:
                connection.advance()
                self._watch(origin, connection)
                if connection.ready:
                    origin.connecting -= 1
                    origin.idle.append(connection)
                    self._serve(origin)
            elif events & WRITE:
                connection.flush()
                self._watch(origin, connection)
            else:
                self._receive(origin, connection)
        except (OSError, ProtocolError) as error:
            self._lose(origin, connection, str(error))

    def _receive(self, origin: OriginPool, connection: HttpConnection) -> None:
        data = connection.receive()
        if data is None:
            return
        fetch, response = connection.fetch, connection.response
        if fetch is None or response is None:
            # The server closed an idle connection, or speaks without being asked.
            origin.idle.remove(connection)
            self._close(origin, connection)
            return
        if data:
            if fetch.first_byte is None:
                fetch.first_byte = time.monotonic()
            response.feed(data)
        else:
            response.end()
        if response.done:
            fetch.ended = time.monotonic()
            self._ended(fetch)
            connection.release()
            if response.keep_alive:
                origin.idle.append(connection)
            else:
                self._close(origin, connection)
        self._progressed(fetch)
        if response.done:
            self._serve_all(origin)

    def _serve_all(self, first: OriginPool) -> None:
        self._serve(first)
        if self._open >= IN_ALL - 1:
            for origin in self._origins.values():
                self._serve(origin)

    def _close(self, origin: OriginPool, connection: HttpConnection) -> None:
        if connection.socket in self._selector.get_map():
            self._selector.unregister(connection.socket)
        connection.socket.close()
        origin.open -= 1
        self._open -= 1

    def _lose(self, origin: OriginPool, connection: HttpConnection, error: str) -> None:
        """Drop a broken connection; retry its fetch once if the connection was only stale."""
        fetch = connection.fetch
        if connection in origin.idle:
            origin.idle.remove(connection)
        self._close(origin, connection)
        if not connection.ready:
            origin.connecting -= 1
            # As in Chrome, the fetch whose turn it is fails, and the next gets its own try.
            if origin.waiting:
                self.fail(origin.take(), f"cannot connect: {error}")
        elif fetch is not None:
            if connection.used and fetch.first_byte is None and not fetch.retried:
                fetch.retried = True
                origin.add(fetch)
            else:
                self.fail(fetch, error)
        self._serve_all(origin)


class OriginPool:
    """One host and port: its connections, and its fetches by priority, then by discovery."""

    __slots__ = ("_queue", "_sequence", "address", "connecting", "early", "host", "idle", "open",
                 "port", "state", "tls")  # fmt: skip

    def __init__(self, host: str, port: int, tls: bool) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self.state = UNRESOLVED
        self.address: str | None = None
        self.idle: list[HttpConnection] = []  # the one used last is the last one
        self.early = 0  # connections to open before anything is asked
        self.connecting = 0
        self.open = 0
        self._queue: list[tuple[int, int, Fetch]] = []
        self._sequence = 0

    def add(self, fetch: Fetch) -> None:
        """Let ``fetch`` wait for a connection."""
        self._sequence += 1
        heappush(self._queue, (-fetch.node.priority, self._sequence, fetch))

    def take(self) -> Fetch:
        """Return the fetch whose turn it is."""
        return heappop(self._queue)[2]

    @property
    def waiting(self) -> int:
        """Number of fetches that wait."""
        return len(self._queue)

    def take_idle(self) -> HttpConnection | None:
        """Take a free connection, if any: a used one before an unused one, newest first."""
        for index in range(len(self.idle) - 1, -1, -1):
            if self.idle[index].used:
                return self.idle.pop(index)
        return self.idle.pop(0) if self.idle else None

    @property
    def may_open(self) -> bool:
        """Whether a fetch waits that no connection under way will serve, and the limit allows."""
        return self.waiting > self.connecting and self.open < PER_ORIGIN
