"""Stated values of publications, one in each row of ``published/reference/*.csv``.

Columns: ``place`` (table, figure or section), ``quantity``, ``unit``, then ``value`` or the ends
``low`` and ``high`` of a range (one end alone: "at least", "at most"), then the knobs for which the
value is stated, by leaf name; an empty knob means that the source does not say, or any.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    FiniteFloat,
    StringConstraints,
    ValidationError,
    create_model,
    model_validator,
)

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.kinds import KINDS, knobs_of

BOUNDS = ("value", "low", "high")
HEADER = ("place", "quantity", "unit", *BOUNDS)
KNOBS = {knob.name: knob for kind in KINDS.values() for knob in knobs_of(kind)}
_Word = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


@dataclass(frozen=True, slots=True)
class Stated:
    """One stated value, or a range with one open end or none, in ``unit``, and its place.

    ``axes`` holds the knobs for which it is stated, by leaf name; ``decimals`` is how many the
    publication prints, zeros included; ``line`` is its line in the file.
    """

    place: str
    quantity: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    axes: dict[str, Any]
    decimals: int = 0
    line: int = field(default=0, compare=False)

    @property
    def bound(self) -> float:
        """The value; of a range its upper end, or its only one."""
        return next(end for end in (self.value, self.high, self.low) if end is not None)


class _Row(BaseModel):
    """A row without its empty cells; knobs are further fields."""

    place: _Word
    quantity: _Word
    unit: _Word
    value: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None

    @model_validator(mode="after")
    def _has_a_value_or_a_range(self) -> Self:
        if self.value is None and self.low is None and self.high is None:
            raise ValueError("neither a value nor a range")
        if self.value is not None and (self.low is not None or self.high is not None):
            raise ValueError("both a value and a range; keep one")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"the range begins at {self.low:g}, above its end at {self.high:g}")
        return self


_FIELDS: dict[str, Any] = {name: (knob.type | None, None) for name, knob in KNOBS.items()}
_KnownRow = create_model("_KnownRow", __base__=_Row, **_FIELDS)


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
    rows_by_key: dict[tuple[Any, ...], Stated] = {}
    for cells in reader:
        try:
            row = replace(_parse_row(header, cells), line=reader.line_num)
        except ConfigurationError as error:
            problems += [f"{where}:{reader.line_num}: {problem}" for problem in error.problems]
            continue
        key = (row.place, row.quantity, *sorted(row.axes.items()))
        if rows_by_key.setdefault(key, row) is not row:
            problems.append(
                f"{where}:{reader.line_num}: {row.quantity} is stated twice for the same knobs at "
                f"{row.place}"
            )
    if not rows_by_key and not problems:
        problems = [f"{where}:1: there are no rows below the columns"]
    if problems:
        raise ConfigurationError(problems)
    return tuple(rows_by_key.values())


def _header_problems(header: Sequence[str]) -> list[str]:
    if tuple(header[: len(HEADER)]) != HEADER:
        return [f"the columns begin with {','.join(header)!r}, expected {','.join(HEADER)!r}"]
    axes = header[len(HEADER) :]
    unknown = [
        f"no knob is named {name!r}{did_you_mean(name, KNOBS)}; the knobs are {', '.join(KNOBS)}"
        for name in dict.fromkeys(axes)
        if name not in KNOBS
    ]
    twice = {name for name in axes if axes.count(name) > 1}
    return unknown + [f"the column {name} is there twice" for name in sorted(twice)]


def _parse_row(header: Sequence[str], cells: Sequence[str]) -> Stated:
    if len(cells) != len(header):
        raise ConfigurationError([f"{len(cells)} cells, expected {len(header)}"])
    filled: dict[str, Any] = {
        n: text for n, text in zip(header, cells, strict=True) if text.strip()
    }
    for name in KNOBS.keys() & filled.keys():
        if filled[name] == KNOBS[name].knob.absent:
            filled[name] = None
    try:
        row = _KnownRow.model_validate(filled).model_dump(include=set(header))
    except ValidationError as error:
        raise ConfigurationError([
            f"{detail['loc'][0]} is {filled.get(str(detail['loc'][0]), '')!r}: {detail['msg']}"
            if detail["loc"] else str(detail["ctx"]["error"])
            for detail in error.errors()
        ]) from None  # fmt: skip
    axes = {name: row[name] for name in header[len(HEADER) :] if name in filled}
    printed = (Decimal(filled[name].strip()).as_tuple() for name in BOUNDS if name in filled)
    decimals = max(0, *(-int(number.exponent) for number in printed))
    return Stated(**{name: row[name] for name in HEADER}, axes=axes, decimals=decimals)
