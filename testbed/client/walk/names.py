"""Host names to addresses: /etc/hosts first, then one UDP question to the name server.

Sources: RFC 1035 section 4, hosts(5), resolv.conf(5).  getaddrinfo() would block the event loop.
"""

from __future__ import annotations

import socket

PORT = 53
ATTEMPTS = 2  # resolv.conf(5): attempts
RETRY_S = 5.0  # resolv.conf(5): timeout
TYPE_A = 1
CLASS_IN = 1
HEADER_BYTES = 12
POINTER = 0xC0
RECURSION_DESIRED = 0x0100
IS_RESPONSE = 0x8000


class LookupFailedError(Exception):
    """The name has no address, or the name server's answer makes no sense."""


def literal_address(host: str) -> str | None:
    """``host`` itself when it is an IPv4 address."""
    try:
        socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return None
    return host


def parse_hosts(text: str) -> dict[str, str]:
    """Names to IPv4 addresses of a hosts file; the first line of a name wins."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if literal_address(address):
            for name in names:
                found.setdefault(name.lower(), address)
    return found


def parse_nameserver(text: str) -> str | None:
    """The first IPv4 name server of a resolv.conf."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1 and literal_address(words[1]):
            return words[1]
    return None


def question(identity: int, host: str) -> bytes:
    """A query for the A records of ``host``.

    Raises:
        LookupFailedError: it is not a host name.
    """
    labels = [label.encode("ascii", "replace") for label in host.rstrip(".").split(".")]
    if not all(0 < len(label) < 64 for label in labels):
        raise LookupFailedError(f"not a host name: {host!r}")
    counts = (1, 0, 0, 0)
    head = b"".join(n.to_bytes(2, "big") for n in (identity, RECURSION_DESIRED, *counts))
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return head + name + TYPE_A.to_bytes(2, "big") + CLASS_IN.to_bytes(2, "big")


def parse_answer(identity: int, data: bytes) -> str | None:
    """The first address of an answer; ``None`` when it answers another question.

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
            if kind == TYPE_A and length == 4 and at + 14 <= len(data):
                return socket.inet_ntoa(data[at + 10 : at + 14])
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
