"""Looking names up beside the transfers: each name once, for all that wait for it."""

from __future__ import annotations

import selectors
import socket

from testbed.client.walk.names import (
    ATTEMPTS,
    PORT,
    RETRY_S,
    LookupFailedError,
    literal_address,
    parse_answer,
    parse_hosts,
    parse_nameserver,
    question,
)

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Callable

ETC_HOSTS = "/etc/hosts"
ETC_RESOLV_CONF = "/etc/resolv.conf"
ANSWER_BYTES = 4096


class Resolver:
    """Names to addresses for one load; what was found is kept until its end."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        after: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """Read /etc.

        Args:
            selector: watches the sockets; its keys' data are called with the events.
            after: calls a function after a number of seconds.
        """
        self._selector = selector
        self._after = after
        self._known = parse_hosts(_read(ETC_HOSTS))
        self._nameserver = parse_nameserver(_read(ETC_RESOLV_CONF))
        self._lookups: dict[str, _Lookup] = {}
        self._asked = 0

    def resolve(
        self, host: str, found: Callable[[str], None], failed: Callable[[str], None]
    ) -> None:
        """Call ``found`` with the address of ``host``, at once or later, or ``failed``."""
        address = literal_address(host) or self._known.get(host)
        if address is not None:
            found(address)
            return
        lookup = self._lookups.get(host)
        if lookup is None:
            try:
                lookup = self._ask(host)
            except (LookupFailedError, OSError) as error:
                failed(str(error))
                return
        lookup.waiting.append((found, failed))

    def _ask(self, host: str) -> _Lookup:
        if self._nameserver is None:
            raise LookupFailedError(f"{ETC_RESOLV_CONF} names no name server")
        self._asked += 1
        lookup = self._lookups[host] = _Lookup(host, self._nameserver, self._asked)
        self._selector.register(lookup.socket, selectors.EVENT_READ, lambda _: self._answer(host))
        self._after(RETRY_S, lambda: self._ask_again(host))
        return lookup

    def _answer(self, host: str) -> None:
        lookup = self._lookups[host]
        try:
            address = parse_answer(lookup.identity, lookup.socket.recv(ANSWER_BYTES))
        except (LookupFailedError, OSError) as error:
            self._end(host, None, str(error))
            return
        if address is not None:
            self._known[host] = address
            self._end(host, address, "")

    def _ask_again(self, host: str) -> None:
        lookup = self._lookups.get(host)
        if lookup is None:
            return
        try:
            lookup.ask()
        except (LookupFailedError, OSError) as error:
            self._end(host, None, str(error))
            return
        self._after(RETRY_S, lambda: self._ask_again(host))

    def _end(self, host: str, address: str | None, error: str) -> None:
        lookup = self._lookups.pop(host)
        self._selector.unregister(lookup.socket)
        lookup.socket.close()
        for found, failed in lookup.waiting:
            if address is None:
                failed(error)
            else:
                found(address)


class _Lookup:
    """A question that is under way, on a socket of its own."""

    __slots__ = ("_asked", "_query", "identity", "socket", "waiting")

    def __init__(self, host: str, nameserver: str, identity: int) -> None:
        self.identity = identity
        self.waiting: list[tuple[Callable[[str], None], Callable[[str], None]]] = []
        self._query = question(identity, host)
        self._asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self.socket.connect((nameserver, PORT))
            self.ask()
        except BaseException:
            self.socket.close()
            raise

    def ask(self) -> None:
        """Send the question (again).

        Raises:
            LookupFailedError: it has been asked often enough.
        """
        if self._asked >= ATTEMPTS:
            raise LookupFailedError(f"no answer to {ATTEMPTS} questions")
        self._asked += 1
        self.socket.send(self._query)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib
            return file.read()
    except FileNotFoundError:
        return ""
