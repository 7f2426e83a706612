"""Untrusted files, read within bounds: budgets, zip files, JSON, its fields, and points in time.

Beyond RFC 8259: a byte order mark is skipped, as HAR readers should, or says UTF-16; NaN and
Infinity, which some writers make, become null; numbers too large for a float become null.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from threading import Lock
from typing import Any

from testbed.base.errors import ConfigurationError
from wings.pages.coding import CodingError, decode
from wings.pages.importing.importer import GZIP_MARK, UTF16_MARKS
from wings.pages.importing.notes import Notes
from wings.pages.limits import HAR_BYTES, JSON_VALUES, mib

_BROKEN_ZIP = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError,
               OSError, EOFError, ValueError, zlib.error)  # fmt: skip
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[\[{,]', re.DOTALL)
_LONGEST_NUMBER = 25
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")
_LARGEST = 1e15
_SCRIPT_DATE = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{2}) (\d{4}) (\d{2}:\d{2}:\d{2})(?: GMT([+-]\d{4}))?"
)
_LONGEST_TIME = 64
_SECONDS_UNTIL_MS = 1e11  # as seconds the year 5138, as milliseconds 1973


class Budget:
    """Bytes that may still be taken in; several threads may take of it."""

    def __init__(self, size: int, problem: str) -> None:
        self.left = size
        self._problem = problem
        self._lock = Lock()

    def take(self, size: int) -> None:
        """Count ``size`` bytes.

        Raises:
            ConfigurationError: it is more than is left; its text is the budget's ``problem``.
        """
        with self._lock:
            self.left -= size
            used_up = self.left < 0
        if used_up:
            raise ConfigurationError([self._problem])


@contextmanager
def opened_zip(path: Path, what: str) -> Iterator[zipfile.ZipFile]:
    """Yield the zip file ``path``, of which nothing is unpacked to disk: no name is a path here.

    Raises:
        ConfigurationError: it is broken, found so when it is opened or while it is read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _BROKEN_ZIP as error:
        raise ConfigurationError([f"a broken {what}: {error}; fetch it again"]) from None


def read_json(path: Path, notes: Notes) -> Any:
    """Read the value in ``path``, plain or gzip.

    Raises:
        ConfigurationError: it is too large, or is no JSON; the message has the byte, and says when
            the file ends too early.
        OSError: it cannot be read.
    """
    too_large = (
        f"more than {mib(HAR_BYTES)}; export fewer pages, or without bodies: those are "
        "made in their recorded sizes"
    )
    with path.open("rb") as file:
        data = file.read(HAR_BYTES + 1)
    try:
        if data.startswith(GZIP_MARK) and len(data) <= HAR_BYTES:
            data = decode(data, "gzip", HAR_BYTES)
    except CodingError as error:
        problem = too_large if "limit" in str(error) else f"a damaged file: {error}; fetch it again"
        raise ConfigurationError([problem]) from None
    if len(data) > HAR_BYTES:
        raise ConfigurationError([too_large])
    return parse_json(data, notes)


def parse_json(data: bytes, notes: Notes) -> Any:
    """Parse the JSON text ``data``; odd numbers are noted.

    Raises:
        ConfigurationError: as ``read_json``.
    """
    size = len(data)
    _check_values(data)
    encoding = "utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise ConfigurationError(
            [f"not {name} at byte {error.start}; save the HAR as UTF-8"]
        ) from None
    del data

    def odd(value: str) -> Any:
        notes.add("Numbers that no file should have, taken as not recorded", value)

    def number(value: str) -> float | None:
        parsed = float(value)
        return parsed if abs(parsed) < float("inf") else odd(value)

    def whole(value: str) -> int | None:
        return int(value) if len(value) <= _LONGEST_NUMBER else odd(value)

    try:
        return json.loads(text, parse_constant=odd, parse_float=number, parse_int=whole)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode(encoding, "surrogatepass"))
        # An unclosed string begins long before the end, but nothing of it follows.
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        reason = "the file ends too early, so fetch it again" if cut else error.msg
        if error.msg == "Extra data":
            reason = "the HAR has ended, but the file goes on; a file is one HAR"
        raise ConfigurationError([f"no JSON at byte {at} of {size}: {reason}"]) from None
    except RecursionError:
        raise ConfigurationError(["nested too deeply to be a HAR"]) from None


def _check_values(data: bytes) -> None:
    """Refuse millions of tiny values: each costs twenty times its text in memory."""
    if sum(data.count(mark) for mark in (b"[", b"{", b",")) <= JSON_VALUES:
        return
    count = 0
    for match in _TOKEN.finditer(data):
        count += data[match.start()] != 0x22
        if count > JSON_VALUES:
            raise ConfigurationError([f"more than {JSON_VALUES} values; export fewer pages"])


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
        """Return whether the field is there and not null."""
        return self._members.get(name) is not None

    def text(self, name: str) -> str:
        """Return a string; half a surrogate pair becomes U+FFFD."""
        return whole_text(self._string(name, self._members.get(name)) or "")

    def take_text(self, name: str) -> str | None:
        """As ``text``, but gone afterwards, so that the memory is free; ``None`` for nothing."""
        return self._string(name, self._members.pop(name, None))

    def number(self, name: str) -> float | None:
        """Return a number, also one that is written as text, as WebPageTest does."""
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
        """Return a number of bytes; HAR's -1, and anything below 0, is ``None``."""
        value = self.number(name)
        return None if value is None or value < 0 else int(value)

    def fields(self, name: str) -> Fields:
        """Return the object ``name``; an empty one if there is none."""
        return Fields(self._members.get(name), f"{self.where}.{name}", self._notes)

    def members(self, name: str) -> list[Fields]:
        """Return the objects of the array ``name``."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, list):
            self._odd(name)
        items = value if isinstance(value, list) else []
        return [
            Fields(item, f"{self.where}.{name}[{index}]", self._notes)
            for index, item in enumerate(items)
        ]

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields, in their order."""
        return tuple(self._members)

    def raw(self, name: str) -> object:
        """Return whatever is there."""
        return self._members.get(name)

    def _string(self, name: str, value: object) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self._odd(name)
        return None

    def _odd(self, name: str) -> None:
        where = f"{self.where}.{name}" if name else self.where
        self._notes.add("Fields of a wrong type, taken as not recorded", where)


def whole_text(text: str) -> str:
    """Return ``text`` without halves of surrogate pairs, which no encoding can hold."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_moment(value: object) -> datetime | None:
    """Return the time that ``value`` means, in UTC, which is the zone of one that names none.

    Recorders write ISO 8601, the dates of HTTP and JavaScript, and numbers: seconds or
    milliseconds since 1970.  ``None``: it is no time.
    """
    try:
        moment = _parse_moment(value)
        if moment is None:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None


def _parse_moment(value: object) -> datetime | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value >= _SECONDS_UNTIL_MS else float(value)
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    if not isinstance(value, str):
        return None
    text = value.strip()[:_LONGEST_TIME]
    if re.fullmatch(r"\d{9,14}(\.\d{1,9})?", text):
        return _parse_moment(float(text))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if date_match := _SCRIPT_DATE.match(text):
        month, day, year, time, zone = date_match.groups()
        return parsedate_to_datetime(f"{day} {month} {year} {time} {zone or '+0000'}")
    return parsedate_to_datetime(text)
