"""Flights of TLS in a segment, in words: ``client-hello+ticket+early,sealed*2``.

Records by their order (RFC 8446 section 5.1): the hellos with what they say of a ticket and of
early data (sections 4.2.10 and 4.2.11), ``alert``, and ``sealed`` for what is encrypted, with how
many such records there are.  Records of the compatibility mode mean nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from testbed.wire.tls import (
    ALERT,
    APPLICATION_DATA,
    CLIENT_HELLO,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
)

_COMPATIBILITY, _HANDSHAKE = 20, 22
_KINDS = {_COMPATIBILITY: "", ALERT: "alert", _HANDSHAKE: "handshake", APPLICATION_DATA: "sealed"}
_HELLOS = {CLIENT_HELLO: "client-hello", SERVER_HELLO: "server-hello"}
_SAID = {41: "ticket", 42: "early"}
"""The extensions pre_shared_key and early_data."""
# Behind the headers of record and message, version and random (section 4.1.2).
_SESSION_ID_AT = RECORD_HEADER_BYTES + 4 + 2 + 32


def describe_flight(payload: bytes) -> str:
    """Return the records of ``payload``; empty unless it is records of TLS, all of them whole."""
    try:
        words = [word for word in _records(payload) if word]
    except (IndexError, KeyError):
        return ""
    counted = ((word, len(list(same))) for word, same in groupby(words))
    return ",".join(word if times == 1 else f"{word}*{times}" for word, times in counted)


def _records(payload: bytes) -> Iterator[str]:
    at = 0
    while at < len(payload):
        kind, version = _KINDS[payload[at]], payload[at + 1]
        end = at + RECORD_HEADER_BYTES + _number(payload, at + 3)
        if version != 3 or end > len(payload):
            raise IndexError
        hello = _HELLOS.get(payload[at + RECORD_HEADER_BYTES]) if kind == "handshake" else None
        yield kind if hello is None else "+".join((hello, *_said(payload[at:end], hello)))
        at = end


def _said(record: bytes, hello: str) -> list[str]:
    """Return which of ``_SAID`` a hello has, in the order of this table."""
    at = _SESSION_ID_AT + 1 + record[_SESSION_ID_AT]
    if hello == "client-hello":
        at += 2 + _number(record, at)  # the cipher suites
        at += 1 + record[at]  # the methods of compression
    else:
        at += 2 + 1
    end = at + 2 + _number(record, at)
    at += 2
    kinds = set()
    while at < end:
        kinds.add(_number(record, at))
        at += 4 + _number(record, at + 2)
    return [word for kind, word in _SAID.items() if kind in kinds]


def _number(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + 2])
