"""Fields of a JSON object that may have any type: what fits is taken, the rest is counted."""

from __future__ import annotations

import math
import re
from typing import Any

from testbed.pages.importing.notes import Notes

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
