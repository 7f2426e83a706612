"""Frames of an opened QUIC packet, and what of a stream they brought (RFC 9000 section 19)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

ACK, CRYPTO, STREAM, CLOSE = 0x02, 0x06, 0x08, 0x1C
_PADDING, _PING, _STREAM_END = 0x00, 0x01, 0x0F
_ACK_ECN, _NEW_TOKEN, _NEW_CONNECTION_ID, _CLOSE_APPLICATION = 0x03, 0x07, 0x18, 0x1D
_FIN, _LENGTH, _OFFSET = 1, 2, 4
_TOKEN_BYTES = 16
# How many numbers make up frames of one type, and how many bytes are behind these.
_PLAIN = {
    0x04: (3, 0), 0x05: (2, 0), 0x10: (1, 0), 0x11: (2, 0), 0x12: (1, 0), 0x13: (1, 0),
    0x14: (1, 0), 0x15: (2, 0), 0x16: (1, 0), 0x17: (1, 0), 0x19: (1, 0), 0x1A: (0, 8),
    0x1B: (0, 8), 0x1E: (0, 0), 0xAF: (4, 0), 0x1F: (0, 0),
}  # fmt: skip
"""With ACK_FREQUENCY and IMMEDIATE_ACK, which Chromium may send."""


class Frame(NamedTuple):
    """One frame; ``kind`` is its type, the first of those of STREAM, ACK and CONNECTION_CLOSE.

    ``stream``, ``offset``, ``data`` and ``fin`` are of STREAM and CRYPTO; ``stream`` is the error
    of a CONNECTION_CLOSE, and ``data`` its reason.  ``acked`` are the first and the last number of
    each range of an ACK.
    """

    kind: int
    stream: int = 0
    offset: int = 0
    data: bytes = b""
    fin: bool = False
    acked: tuple[tuple[int, int], ...] = ()


class Coverage:
    """Which bytes of a stream were seen."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._reached = 0
        self._ahead: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> bool:
        """Note bytes ``start`` to ``end``, and return whether one of them is new."""
        if start <= self._reached and not self._ahead:
            is_new, self._reached = end > self._reached, max(self._reached, end)
            return is_new
        before = self.seen
        merged: list[tuple[int, int]] = []
        for low, high in sorted([(0, self._reached), *self._ahead, (start, end)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        self._reached, self._ahead = merged[0][1], merged[1:]
        return self.seen > before

    @property
    def seen(self) -> int:
        """How many bytes were seen."""
        return self._reached + sum(high - low for low, high in self._ahead)


def join_start(pieces: Iterable[tuple[int, bytes]], most: int = sys.maxsize) -> bytes:
    """Return the start of a stream of ``pieces`` with their offsets, up to the first hole.

    It ends with the piece that makes it longer than ``most``.
    """
    joined = bytearray()
    for offset, data in sorted(pieces, key=itemgetter(0)):
        if offset > len(joined) or len(joined) > most:
            break
        joined += data[len(joined) - offset :]
    return bytes(joined)


def read_number(content: bytes, position: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends (RFC 9000 section 16).

    Raises:
        IndexError: the content ends before.
    """
    first = content[position]
    end = position + (1 << (first >> 6))
    if end > len(content):
        raise IndexError("a number is cut off")
    if first < 0x40:
        return first, end
    return int.from_bytes(content[position:end]) & ((1 << (8 * (end - position) - 2)) - 1), end


def read_frames(content: bytes) -> tuple[Frame, ...]:
    """Return the frames of a packet's plain text, without padding.

    Raises:
        ValueError: they cannot be read.
    """
    try:
        return tuple(_read(content))
    except IndexError as error:
        raise ValueError("a QUIC packet ends within a frame") from error


def _read(content: bytes) -> Iterator[Frame]:
    position, end = 0, len(content)
    while position < end:
        kind = content[position]
        if kind == _PADDING:
            position = end - len(content[position:].lstrip(b"\0"))
            continue
        kind, position = read_number(content, position)
        if STREAM <= kind <= _STREAM_END:
            frame, position = _read_stream(content, kind, position)
        elif kind == CRYPTO:
            offset, position = read_number(content, position)
            size, position = read_number(content, position)
            frame = Frame(CRYPTO, 0, offset, content[position : position + size])
            position += size
        elif kind in (ACK, _ACK_ECN):
            frame, position = _read_ack(content, kind, position)
        else:
            frame, position = _read_other(content, kind, position)
        if position > end:
            raise IndexError("a frame is cut off")
        yield frame


def _read_stream(content: bytes, kind: int, position: int) -> tuple[Frame, int]:
    stream, position = read_number(content, position)
    offset = 0
    if kind & _OFFSET:
        offset, position = read_number(content, position)
    end = len(content)
    if kind & _LENGTH:
        size, position = read_number(content, position)
        end = position + size
    return Frame(STREAM, stream, offset, content[position:end], bool(kind & _FIN)), end


def _read_ack(content: bytes, kind: int, position: int) -> tuple[Frame, int]:
    last, position = read_number(content, position)
    _, position = read_number(content, position)  # the delay
    more, position = read_number(content, position)
    size, position = read_number(content, position)
    acked = [(last - size, last)]
    for _ in range(more):
        gap, position = read_number(content, position)
        size, position = read_number(content, position)
        last = acked[-1][0] - gap - 2
        acked.append((last - size, last))
    for _ in range(3 if kind == _ACK_ECN else 0):
        _, position = read_number(content, position)
    return Frame(ACK, acked=tuple(acked)), position


def _read_other(content: bytes, kind: int, position: int) -> tuple[Frame, int]:
    if kind == _PING:
        return Frame(kind), position
    if kind in _PLAIN:
        numbers, more = _PLAIN[kind]
        for _ in range(numbers):
            _, position = read_number(content, position)
        return Frame(kind), position + more
    if kind == _NEW_TOKEN:
        size, position = read_number(content, position)
        return Frame(kind), position + size
    if kind == _NEW_CONNECTION_ID:
        for _ in range(2):
            _, position = read_number(content, position)
        return Frame(kind), position + 1 + content[position] + _TOKEN_BYTES
    if kind in (CLOSE, _CLOSE_APPLICATION):
        code, position = read_number(content, position)
        if kind == CLOSE:
            _, position = read_number(content, position)
        size, position = read_number(content, position)
        return Frame(CLOSE, code, 0, content[position : position + size]), position + size
    raise ValueError(f"a QUIC frame of the unknown type {kind:#x}")
