"""Messages to and from the kernel about devices, addresses, routes and disciplines (rtnetlink(7)).

An exec of ``ip`` or ``tc`` costs as much as a hundred of them.  A socket speaks with the network
namespace that its thread was in when it was opened.  Sources: rtnetlink(7), netlink(7),
include/uapi/linux/rtnetlink.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

# Kinds of messages: to make, to remove, to ask.
NEWLINK, DELLINK, GETLINK = 16, 17, 18
NEWADDR, NEWNEIGH, DELNEIGH = 20, 28, 29
NEWROUTE, DELROUTE, GETROUTE = 24, 25, 26
NEWRULE, DELRULE, GETRULE = 32, 33, 34
NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38
GETTCLASS = 42
# Groups of notifications (RTMGRP_*): devices, neighbours, disciplines and filters, addresses,
# routes, rules; addresses and routes of IPv6.
CHANGES = 0x1 | 0x4 | 0x8 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400

_ERROR, _DONE = 2, 3
_REQUEST, _ACKNOWLEDGE, _DUMP, _INTERRUPTED = 0x1, 0x4, 0x300, 0x10
# How something is made: anew and not there yet, or in place of what is there.
CREATE, REPLACE = 0x600, 0x500
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF  # above it: nested, byte order
_ROOM = 1 << 16
_TRIES = 5

Message = tuple[int, bytes]
"""Type and body."""


def dump(control: socket.socket, kind: int, body: bytes) -> list[bytes]:
    """The bodies of all that the kernel has of one kind, such as ``GETROUTE``.

    Args:
        control: from ``open_control``.
        kind: the question.
        body: its header, such as a ``struct rtmsg``, which says of which family.

    Raises:
        OSError: the kernel refuses, or the answer changes faster than it can be read.
    """
    for _ in range(_TRIES):
        control.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _DUMP, 0, 0) + body)
        bodies = _read_answer(control)
        if bodies is not None:
            return bodies
    raise OSError(errno.EAGAIN, "what was asked for changed while it was read")


def _read_answer(control: socket.socket, *, of_one: bool = False) -> list[bytes] | None:
    """The bodies of an answer (an order has none), or ``None`` if it changed meanwhile."""
    bodies: list[bytes] = []
    whole = True
    while True:
        for kind, flags, body in _split(control.recv(_ROOM)):
            whole = whole and not flags & _INTERRUPTED
            if kind == _DONE:
                return bodies if whole else None
            if kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                if of_one and number == 0:
                    return bodies
                raise OSError(number, os.strerror(number))
            bodies.append(body)


def order(control: socket.socket, kind: int, body: bytes, flags: int = 0) -> None:
    """Have the kernel do something, such as ``NEWROUTE`` with ``CREATE``.

    Args:
        control: from ``open_control``.
        kind: what to do.
        body: its header and attributes.
        flags: ``CREATE`` or ``REPLACE``; none to change what is there.

    Raises:
        OSError: the kernel refuses.
    """
    head = _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _ACKNOWLEDGE | flags, 0, 0)
    control.send(head + body)
    _read_answer(control, of_one=True)


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute as a message carries it, padded to four bytes (struct rtattr).

    ``value`` may be attributes itself.
    """
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + bytes(-size % 4)


def open_control() -> socket.socket:
    """A socket to ask with, in this thread's network namespace."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)


def open_changes() -> socket.socket:
    """A socket that is told of ``CHANGES`` in this thread's network namespace, from now on."""
    told = open_control()
    told.bind((0, CHANGES))
    told.setblocking(False)
    return told


def read_changes(told: socket.socket) -> Iterator[Message]:
    """What a socket of ``open_changes`` was told.

    Raises:
        OSError: there was more than it had room for (ENOBUFS).
    """
    while True:
        try:
            data = told.recv(_ROOM)
        except BlockingIOError:
            return
        for kind, _, body in _split(data):
            yield kind, body


def _split(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    position = 0
    while position + _HEADER.size <= len(data):
        length, kind, flags, _, _ = _HEADER.unpack_from(data, position)
        yield kind, flags, data[position + _HEADER.size : position + length]
        position += (length + 3) & ~3


def attributes(data: bytes, start: int = 0) -> dict[int, bytes]:
    """The attributes of a message from ``start`` on, by type (struct rtattr)."""
    by_type = {}
    while start + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, start)
        if length < _ATTRIBUTE.size:
            break
        by_type[kind & _TYPE_MASK] = data[start + _ATTRIBUTE.size : start + length]
        start += (length + 3) & ~3
    return by_type


def text_of(value: bytes) -> str:
    """An attribute that is text."""
    return value.rstrip(b"\0").decode(errors="replace")


def number_of(value: bytes) -> int:
    """An attribute that is an unsigned number of 1, 2, 4 or 8 bytes of this machine's order."""
    return int.from_bytes(value, "little")
