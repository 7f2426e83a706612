"""Resolver of host names: /etc/hosts first, then one UDP question to the name server.

Sources: RFC 1035 section 4, hosts(5), resolv.conf(5).  getaddrinfo() would block the event loop.
"""

from __future__ import annotations

import selectors
import socket

from testbed.base.addresses import family_of, format_address, pack_address

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 53
ATTEMPTS = 2  # resolv.conf(5): attempts
RETRY_S = 5.0  # resolv.conf(5): timeout
TYPES = {4: 1, 16: 28}  # by the length of an address: A and AAAA (RFC 3596)
CLASS_IN = 1
HEADER_BYTES = 12
POINTER = 0xC0
RECURSION_DESIRED = 0x0100
IS_RESPONSE = 0x8000

ETC_HOSTS = "/etc/hosts"
ETC_RESOLV_CONF = "/etc/resolv.conf"
ANSWER_BYTES = 4096


class LookupFailedError(Exception):
    """The name has no address, or the name server's answer makes no sense."""


def literal_address(host: str) -> str | None:
    """Return ``host`` itself when it is an IP address."""
    try:
        pack_address(host)
    except OSError:
        return None
    return host


def parse_hosts(text: str) -> dict[str, str]:
    """Return the names to addresses of a hosts file; the first line of a name wins."""
    addresses: dict[str, str] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if literal_address(address):
            for name in names:
                addresses.setdefault(name.lower(), address)
    return addresses


def parse_nameserver(text: str) -> str | None:
    """Return the first name server of a resolv.conf."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1 and literal_address(words[1]):
            return words[1]
    return None


def question(identity: int, host: str, kind: int = TYPES[4]) -> bytes:
    """Return a query for the records of ``host`` that are of a ``kind``.

    Raises:
        LookupFailedError: it is not a host name.
    """
    labels = [label.encode("ascii", "replace") for label in host.rstrip(".").split(".")]
    if not all(0 < len(label) < 64 for label in labels):
        raise LookupFailedError(f"not a host name: {host!r}")
    counts = (1, 0, 0, 0)
    head = b"".join(n.to_bytes(2, "big") for n in (identity, RECURSION_DESIRED, *counts))
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return head + name + kind.to_bytes(2, "big") + CLASS_IN.to_bytes(2, "big")


def parse_answer(identity: int, data: bytes) -> str | None:
    """Return the first address of an answer; ``None`` when it answers another question.

    Raises:
        LookupFailedError: the name has no address, or the answer is damaged.
    """
    try:
        if _number(data, 0) != identity or not _number(data, 2) & IS_RESPONSE:
            return None
        code = _number(data, 2) & 0xF
        if code:
            raise LookupFailedError(f"the name server answered with code {code}")
        at = HEADER_BYTES
        for _ in range(_number(data, 4)):
            at = _skip_name(data, at) + 4
        for _ in range(_number(data, 6)):
            at = _skip_name(data, at)
            kind, length = _number(data, at), _number(data, at + 8)
            if TYPES.get(length) == kind and at + 10 + length <= len(data):
                return format_address(data[at + 10 : at + 10 + length])
            at += 10 + length
    except IndexError:
        raise LookupFailedError("the name server's answer is cut short") from None
    raise LookupFailedError("the name server knows no address")


def _number(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _skip_name(data: bytes, at: int) -> int:
    while True:
        length = data[at]
        if length & POINTER == POINTER:
            return at + 2
        at += 1 + length
        if length == 0:
            return at


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
        self, host: str, on_address: Callable[[str], None], on_failure: Callable[[str], None]
    ) -> None:
        """Call ``on_address`` with the address of ``host``, now or later, or ``on_failure``."""
        address = literal_address(host) or self._known.get(host)
        if address is not None:
            on_address(address)
            return
        lookup = self._lookups.get(host)
        if lookup is None:
            try:
                lookup = self._ask(host)
            except (LookupFailedError, OSError) as error:
                on_failure(str(error))
                return
        lookup.waiting.append((on_address, on_failure))

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
        for on_address, on_failure in lookup.waiting:
            if address is None:
                on_failure(error)
            else:
                on_address(address)


class _Lookup:
    """A question that is under way, on a socket of its own."""

    __slots__ = ("_asked", "_query", "identity", "socket", "waiting")

    def __init__(self, host: str, nameserver: str, identity: int) -> None:
        self.identity = identity
        self.waiting: list[tuple[Callable[[str], None], Callable[[str], None]]] = []
        # Who has a name server of one IP alone has addresses of that one.
        self._query = question(identity, host, TYPES[len(pack_address(nameserver))])
        self._asked = 0
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        self.socket = socket.socket(family_of(nameserver), kind)
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
