"""Untrusted JSON files, plain or gzip: bounded, with the place of errors, fields of any type.

Beyond RFC 8259: a byte order mark is skipped, as HAR readers should, or tells UTF-16; NaN and
Infinity, which some writers make, become null; numbers too large for a float become null.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.pages.importing.claim import Notes
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


_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")
_LARGEST = 1e15


class Fields:
    """One object of the file and where it is; a value of a wrong type counts as not recorded."""

    def __init__(self, value: object, where: str, notes: Notes) -> None:
        self.where = where
        self._notes = notes
        self._members: dict[str, Any] = {}
        if isinstance(value, dict):
            self._members = value
        elif value is not None:
            self._odd("")

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._members.get(name) is not None

    def text(self, name: str) -> str:
        """A string; half a surrogate pair becomes U+FFFD."""
        value = self._members.get(name)
        if isinstance(value, str):
            return whole_text(value)
        if value is not None:
            self._odd(name)
        return ""

    def take_text(self, name: str) -> str | None:
        """As ``text``, but gone afterwards, so that the memory is free; ``None`` for nothing."""
        value = self._members.pop(name, None)
        if isinstance(value, str):
            return value
        if value is not None:
            self._odd(name)
        return None

    def number(self, name: str) -> float | None:
        """A number, also one that is written as text, as WebPageTest does."""
        value = self._members.get(name)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value) and abs(value) < _LARGEST:
                return float(value)
            self._odd(name)
        elif value not in (None, ""):
            self._odd(name)
        return None

    def size(self, name: str) -> int | None:
        """A number of bytes; HAR's -1, and anything below 0, is ``None``."""
        value = self.number(name)
        return None if value is None or value < 0 else int(value)

    def fields(self, name: str) -> Fields:
        """The object ``name``; an empty one if there is none."""
        return Fields(self._members.get(name), f"{self.where}.{name}", self._notes)

    def members(self, name: str) -> list[Fields]:
        """The objects of the array ``name``."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, list):
            self._odd(name)
        found = value if isinstance(value, list) else []
        return [
            Fields(item, f"{self.where}.{name}[{index}]", self._notes)
            for index, item in enumerate(found)
        ]

    def names(self) -> tuple[str, ...]:
        """The names of all fields, in their order."""
        return tuple(self._members)

    def raw(self, name: str) -> object:
        """Whatever is there."""
        return self._members.get(name)

    def _odd(self, name: str) -> None:
        where = f"{self.where}.{name}" if name else self.where
        self._notes.add("Fields of a wrong type, taken as not recorded", where)


def whole_text(text: str) -> str:
    """``text`` without halves of surrogate pairs, which no encoding can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_SCRIPT_DATE = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{2}) (\d{4}) (\d{2}:\d{2}:\d{2})(?: GMT([+-]\d{4}))?"
)
_LONGEST_TIME = 64
_SECONDS_UNTIL_MS = 1e11  # as seconds the year 5138, as milliseconds 1973


def parse_moment(value: object) -> datetime | None:
    """The time that ``value`` means, in UTC, which is taken for the zone of one that names none.

    Numbers are seconds or milliseconds since 1970.  ``None``: it is no time.
    """
    try:
        moment = _parse(value)
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None


def _parse(value: object) -> datetime | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value >= _SECONDS_UNTIL_MS else float(value)
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    if not isinstance(value, str):
        return None
    text = value.strip()[:_LONGEST_TIME]
    if re.fullmatch(r"\d{9,14}(\.\d{1,9})?", text):
        return _parse(float(text))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if found := _SCRIPT_DATE.match(text):
        month, day, year, time, zone = found.groups()
        return parsedate_to_datetime(f"{day} {month} {year} {time} {zone or '+0000'}")
    return parsedate_to_datetime(text)
