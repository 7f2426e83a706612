"""Reads a JSON file that nobody vouches for, plain or gzip: bounded, and with the place of errors.

Beyond RFC 8259: a byte order mark is skipped, as HAR readers should, or tells UTF-16; NaN and
Infinity, which some writers make, become null; numbers too large for a float become null.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.pages.importing.notes import Notes
from testbed.pages.limits import HAR_BYTES, JSON_VALUES, mib

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[\[{,]', re.DOTALL)
_LONGEST_NUMBER = 25


def read_json(path: Path, notes: Notes) -> Any:
    """The value in ``path``.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is no JSON; the message has the
            byte, and says when the file ends too early.
    """
    return parse_json(path, _read(path), notes)


def parse_json(path: Path, data: bytes, notes: Notes) -> Any:
    """The value that ``data``, of the file ``path``, is.

    Raises:
        ConfigurationError: as ``read_json``.
    """
    size = len(data)
    _check_values(path, data)
    encoding = "utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise ConfigurationError(
            [f"{path}: not {name} at byte {error.start}; save the HAR as UTF-8"]
        ) from None
    del data

    def odd(value: str) -> None:
        notes.add("Numbers that no file should have, taken as not recorded", value)

    def number(value: str) -> float | None:
        found = float(value)
        if abs(found) < float("inf"):
            return found
        odd(value)
        return None

    def whole(value: str) -> int | None:
        if len(value) <= _LONGEST_NUMBER:
            return int(value)
        odd(value)
        return None

    try:
        return json.loads(text, parse_constant=odd, parse_float=number, parse_int=whole)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode(encoding, "surrogatepass"))
        # An unclosed string begins long before the end, but nothing of it follows.
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        reason = "the file ends too early, so fetch it again" if cut else error.msg
        if error.msg == "Extra data":
            reason = "the HAR has ended, but the file goes on; a file is one HAR"
        raise ConfigurationError([f"{path}: no JSON at byte {at} of {size}: {reason}"]) from None
    except RecursionError:
        raise ConfigurationError([f"{path}: nested too deeply to be a HAR"]) from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > HAR_BYTES:
            raise ConfigurationError([_too_large(path)])
        with path.open("rb") as file:
            data = file.read(HAR_BYTES + 1)
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None
    if data.startswith(_GZIP):
        data = _unpack(path, data)
    if len(data) > HAR_BYTES:
        raise ConfigurationError([_too_large(path)])
    return data


def _unpack(path: Path, data: bytes) -> bytes:
    """Every gzip member, and no more than the limit of them."""
    pieces: list[bytes] = []
    size = 0
    stream = zlib.decompressobj(31)
    while data and size <= HAR_BYTES:
        try:
            piece = stream.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            raise ConfigurationError([f"{path}: damaged gzip: {error}; fetch it again"]) from None
        pieces.append(piece)
        size += len(piece)
        data = stream.unconsumed_tail
        if stream.eof:
            data = stream.unused_data
            if data:
                stream = zlib.decompressobj(31)
        elif not piece and not data:
            break
    if not stream.eof and size <= HAR_BYTES:
        raise ConfigurationError([f"{path}: the gzip file ends too early, so fetch it again"])
    return b"".join(pieces)


def _too_large(path: Path) -> str:
    return (
        f"{path}: more than {mib(HAR_BYTES)}; export fewer pages, or without bodies: those are "
        "made in their recorded sizes"
    )


def _check_values(path: Path, data: bytes) -> None:
    """Refuse millions of tiny values: each costs twenty times its text in memory."""
    if sum(data.count(mark) for mark in (b"[", b"{", b",")) <= JSON_VALUES:
        return
    count = 0
    for match in _TOKEN.finditer(data):
        count += data[match.start()] != 0x22
        if count > JSON_VALUES:
            raise ConfigurationError(
                [f"{path}: more than {JSON_VALUES} values; export fewer pages"]
            )
