"""Stated values of publications, one in each row of ``publications/reference/*.csv``.

Columns: ``place`` (table, figure or section), ``quantity``, ``unit``, then ``value`` or the ends
``low`` and ``high`` of a range (one end alone: "at least", "at most"), then the knobs for which the
value is stated, by leaf name; an empty knob means that the source does not say, or any.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.records.cells import flatten
from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.model import Condition

WORDS = ("place", "quantity", "unit")
NUMBERS = ("value", "low", "high")
KNOBS = flatten(Condition(page="", client=""))
UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class Stated:
    """One stated value, or a range with one open end or none, in ``unit``, and its place.

    ``axes`` holds the knobs for which it is stated, by leaf name.
    """

    place: str
    quantity: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    axes: dict[str, Any]

    @property
    def bound(self) -> float:
        """The value; of a range its greatest, or its only, end."""
        ends = (self.value, self.high, self.low)
        return next(one for one in ends if one is not None)


def parse_stated(text: str, where: str) -> tuple[Stated, ...]:
    """Return the rows of a reference table; ``where`` names it in messages.

    Raises:
        ConfigurationError: every problem found, each with ``where`` and line.
    """
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    problems = [f"{where}:1: {problem}" for problem in _header_problems(header)]
    if problems:
        raise ConfigurationError(problems)
    found: list[Stated] = []
    for cells in reader:
        row, wrong = _parse_row(header, cells)
        if not wrong and any(_same(row, other) for other in found):
            wrong = [f"{row.quantity} is stated twice for the same knobs at {row.place}"]
        problems += [f"{where}:{reader.line_num}: {problem}" for problem in wrong]
        if not wrong:
            found.append(row)
    if not found and not problems:
        problems = [f"{where}:1: there are no rows below the columns"]
    if problems:
        raise ConfigurationError(problems)
    return tuple(found)


def _header_problems(header: Sequence[str]) -> list[str]:
    expected = (*WORDS, *NUMBERS)
    if tuple(header[: len(expected)]) != expected:
        return [f"the columns begin with {','.join(header)!r}, expected {','.join(expected)!r}"]
    axes = header[len(expected) :]
    unknown = [
        f"no knob is named {name!r}{did_you_mean(name, KNOBS)}; the knobs are {', '.join(KNOBS)}"
        for name in dict.fromkeys(axes)
        if name not in KNOBS
    ]
    twice = {name for name in axes if axes.count(name) > 1}
    return unknown + [f"the column {name} is there twice" for name in sorted(twice)]


def _parse_row(header: Sequence[str], cells: Sequence[str]) -> tuple[Stated, list[str]]:
    """Return the row as far as it can be read, and its problems."""
    if len(cells) != len(header):
        return Stated("", "", "", None, None, None, {}), [
            f"{len(cells)} cells, expected {len(header)}"
        ]
    row = dict(zip(header, cells, strict=True))
    problems = [f"{name} is missing" for name in WORDS if not row[name].strip()]
    numbers: dict[str, float | None] = dict.fromkeys(NUMBERS)
    axes: dict[str, Any] = {}
    for name, cell in row.items():
        if name in WORDS or not cell:
            continue
        try:
            if name in NUMBERS:
                numbers[name] = _number(cell)
            else:
                axes[name] = parse_axis(name, cell)
        except ValueError as error:
            problems.append(f"{name} is {cell!r}, expected {error}")
    if not any(row[name] for name in NUMBERS):
        problems.append("neither a value nor a range")
    value, low, high = (numbers[name] for name in NUMBERS)
    stated = Stated(row["place"], row["quantity"], row["unit"], value, low, high, axes)
    return stated, problems + _range_problems(stated)


def _range_problems(stated: Stated) -> list[str]:
    low, high = stated.low, stated.high
    if stated.value is not None and (low is not None or high is not None):
        return ["both a value and a range; keep one"]
    if low is not None and high is not None and low > high:
        return [f"the range begins at {low:g}, above its end at {high:g}"]
    return []


def parse_axis(name: str, text: str) -> Any:
    """Return the value of knob ``name`` as a condition holds it.

    Raises:
        ValueError: it cannot be one; the message says what was expected.
    """
    default = KNOBS[name]
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return text == "true"
    if isinstance(default, float):
        return _number(text)
    if isinstance(default, str):
        return text
    if default is None and text == UNLIMITED:
        return None
    try:
        return int(text)
    except ValueError:
        also = f' or "{UNLIMITED}"' if default is None else ""
        raise ValueError(f"a whole number{also}") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _same(one: Stated, other: Stated) -> bool:
    return (one.place, one.quantity, one.axes) == (other.place, other.quantity, other.axes)
