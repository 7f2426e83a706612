"""The event loop: what is known is fetched, what arrives makes more known."""

from __future__ import annotations

import selectors
import time

from testbed.client.walk.connection import Connection
from testbed.client.walk.fetch import Fetch
from testbed.client.walk.lookup import Resolver
from testbed.client.walk.pool import IN_ALL, RESOLVED, RESOLVING, UNRESOLVED, Origin
from testbed.client.walk.response import ProtocolError
from testbed.client.walk.timers import Timers

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.client.walk.discovery import Node

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Loader:
    """Loads one page.  Times are in s of the monotonic clock."""

    def __init__(self, fast_open: bool, timeout_s: float) -> None:
        self.fetches: list[Fetch] = []
        self.timed_out = False
        self.start = 0.0
        self._fast_open = fast_open
        self._timeout_s = timeout_s
        self._origins: dict[tuple[str, int], Origin] = {}
        self._timers = Timers()
        self._connections = 0
        self._open = 0
        self._unfinished = 0
        # select(2) takes microseconds; epoll_wait(2) would round think times up to milliseconds.
        self._selector = selectors.SelectSelector()
        self._resolver = Resolver(self._selector, self._timers.after)

    def load(self, roots: Sequence[Node]) -> None:
        """Fetch ``roots`` and all that becomes known, until nothing is left or time is up."""
        self.start = time.monotonic()
        deadline = self.start + self._timeout_s
        for node in roots:
            self._fetch(node)
        while self._unfinished:
            now = time.monotonic()
            if now >= deadline:
                self.timed_out = True
                self._give_up()
                break
            if self._timers.run_due(now):
                continue
            until = min(deadline, self._timers.next_moment)
            for key, events in self._selector.select(until - now):
                # An event before this one may have closed the socket, and given its number away.
                present = self._selector.get_map().get(key.fd)
                if present is not None and present.fileobj is key.fileobj:
                    key.data(events)
        for origin in self._origins.values():
            for connection in origin.idle:
                connection.socket.close()

    # Discovery

    def _fetch(self, node: Node) -> None:
        fetch = Fetch(node, time.monotonic())
        self.fetches.append(fetch)
        self._unfinished += 1
        key = (node.host, node.port)
        origin = self._origins.get(key)
        if origin is None:
            origin = self._origins[key] = Origin(node.host, node.port)
        origin.add(fetch)
        self._serve(origin)

    def _discover(self, fetch: Fetch) -> None:
        """Fetch the children that the response so far makes known."""
        for think_s, node in fetch.take_known():
            self._think(think_s, node)

    def _think(self, think_s: float, node: Node) -> None:
        if think_s <= 0:
            self._fetch(node)
            return

        def become_known() -> None:
            self._unfinished -= 1
            self._fetch(node)

        self._unfinished += 1
        self._timers.after(think_s, become_known)

    # Names

    def _resolve(self, origin: Origin) -> None:
        origin.state = RESOLVING
        self._resolver.resolve(
            origin.host,
            lambda address: self._resolved(origin, address),
            lambda error: self._unresolved(origin, error),
        )

    def _resolved(self, origin: Origin, address: str) -> None:
        origin.state, origin.address = RESOLVED, address
        self._serve(origin)

    def _unresolved(self, origin: Origin, error: str) -> None:
        origin.state = UNRESOLVED
        while origin.waiting:
            self._fail(origin.take(), f"cannot resolve {origin.host}: {error}")

    # Connections

    def _serve(self, origin: Origin) -> None:
        """Give free connections to what waits, and open more as far as the limits allow."""
        if origin.state == UNRESOLVED:
            self._resolve(origin)
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
        """Whether one more connection may be opened, at the price of an idle one if need be."""
        if self._open < IN_ALL:
            return True
        for origin in self._origins.values():
            if origin.idle:
                self._close(origin, origin.idle.pop(0))
                return True
        return False

    def _connect(self, origin: Origin) -> bool:
        address = (origin.address or "", origin.port)
        self._connections += 1
        try:
            connection = Connection(address, self._connections, self._fast_open)
        except OSError as error:
            self._fail(origin.take(), f"cannot connect: {error}")
            return origin.waiting > 0
        origin.open += 1
        self._open += 1
        if connection.connected:
            origin.idle.append(connection)
        else:
            origin.connecting += 1
            self._watch(origin, connection)
        return True

    def _watch(self, origin: Origin, connection: Connection) -> None:
        events = WRITE if connection.wants_write else READ
        known = self._selector.get_map().get(connection.socket)
        if known is None:
            self._selector.register(
                connection.socket, events, lambda seen: self._ready(origin, connection, seen)
            )
        elif known.events != events:
            self._selector.modify(connection.socket, events, known.data)

    def _ready(self, origin: Origin, connection: Connection, events: int) -> None:
        try:
            if not connection.connected:
                origin.connecting -= 1
                connection.finish_connect()
                self._watch(origin, connection)
                origin.idle.append(connection)
                self._serve(origin)
            elif events & WRITE:
                connection.flush()
                self._watch(origin, connection)
            else:
                self._receive(origin, connection)
        except (OSError, ProtocolError) as error:
            self._lose(origin, connection, str(error))

    def _receive(self, origin: Origin, connection: Connection) -> None:
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
            self._unfinished -= 1
            connection.release()
            if response.keep_alive:
                origin.idle.append(connection)
            else:
                self._close(origin, connection)
        self._discover(fetch)
        if response.done:
            self._serve_all(origin)

    def _serve_all(self, first: Origin) -> None:
        self._serve(first)
        if self._open >= IN_ALL - 1:
            for origin in self._origins.values():
                self._serve(origin)

    def _close(self, origin: Origin, connection: Connection) -> None:
        if connection.socket in self._selector.get_map():
            self._selector.unregister(connection.socket)
        connection.socket.close()
        origin.open -= 1
        self._open -= 1

    # Failures

    def _lose(self, origin: Origin, connection: Connection, error: str) -> None:
        """A connection broke: its fetch is tried once more if it was only a stale connection."""
        fetch = connection.fetch
        if connection in origin.idle:
            origin.idle.remove(connection)
        self._close(origin, connection)
        if not connection.connected:
            # As in Chrome, the fetch whose turn it is fails, and the next gets its own try.
            if origin.waiting:
                self._fail(origin.take(), f"cannot connect: {error}")
        elif fetch is not None:
            if connection.used and fetch.first_byte is None and not fetch.retried:
                fetch.retried = True
                origin.add(fetch)
            else:
                self._fail(fetch, error)
        self._serve_all(origin)

    def _fail(self, fetch: Fetch, error: str) -> None:
        fetch.error = error
        fetch.ended = time.monotonic()
        self._unfinished -= 1

    def _give_up(self) -> None:
        for fetch in self.fetches:
            if fetch.ended is None:
                self._fail(fetch, "not complete in time")
