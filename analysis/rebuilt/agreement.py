"""Verdicts: the claims of a publication held to measured cells.

A stated number agrees when ours, rounded as the publication rounds, is that number or inside the
stated range.  A claim without a number is counted: the cells in which it does not hold are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import Formatter
from typing import Any

import pandas as pd

from analysis.publications.reference import Claim, Reference
from analysis.publications.stated import Stated
from analysis.rebuilt.rebuilt import Agreement, Check
from analysis.rebuilt.sweep import plain
from analysis.words import MISSING, axis_value, count, number, signed
from testbed.base.errors import ConfigurationError

LISTED = 6
NOT_MEASURED = "These results hold no proven load for it."
VERDICTS: dict[bool, Agreement] = {True: "agrees", False: "differs"}


def check_claims(
    reference: Reference,
    tables: Mapping[str, pd.DataFrame],
    part: str = "",
    missing: str = NOT_MEASURED,
) -> Iterator[Check]:
    """Yield the checks of each claim about ``tables``, in the order of the publication's file.

    Args:
        reference: the publication.
        tables: measured cells by the table's name, a row for each.  Claims about a table that is
            not there are left out; of one without rows, they are not measured.  The column
            ``missing``, if there is one, says why a cell has no value.
        part: added to each claim, such as ``at RTT 20 ms``.
        missing: why there are no cells.

    Raises:
        ConfigurationError: a claim names a column that its table does not have.
    """
    named = {claim.quantity for claim in reference.claims}
    others = dict.fromkeys(one.quantity for one in reference.stated if one.quantity not in named)
    for claim in (
        *reference.claims,
        # A quantity that no claim is about stands for itself wherever it is measured.
        *(
            Claim(says=name.replace("_", " "), quantity=name)
            for name in others
            if "cells" in tables and name in tables["cells"]
        ),
    ):
        if claim.table in tables:
            try:
                yield from _Verdict(claim, reference, part, missing).give(tables[claim.table])
            except (KeyError, pd.errors.UndefinedVariableError) as error:
                raise ConfigurationError(
                    [
                        f"{reference.name}.toml: claim {claim.says!r}: {error}; table "
                        f"{claim.table!r} has: {', '.join(map(str, tables[claim.table]))}"
                    ]
                ) from None


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a claim holds for, or does not: a cell or a group, and the cells that break it."""

    rows: pd.DataFrame
    broken: pd.DataFrame

    @property
    def holds(self) -> bool:
        return self.broken.empty


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The checks of one claim."""

    claim: Claim
    reference: Reference
    part: str
    missing: str

    def give(self, table: pd.DataFrame) -> Iterator[Check]:
        claim = self.claim
        cells = _meeting(table.reset_index(drop=True), claim.cells)
        if claim.quantity:
            yield from self._stated(cells)
        elif claim.ours:
            yield from (self._single(unit) for unit in self._units(cells))
        else:
            yield self._count(claim.place, claim.says, list(self._units(cells)))

    def _stated(self, cells: pd.DataFrame) -> Iterator[Check]:
        """Compare the stated values of the quantity, one by one or counted at each place."""
        places: dict[str, tuple[Stated, list[_Unit]]] = {}
        for stated in self.reference.select(self.claim.quantity):
            rows = self._cells_of(stated, cells)
            if not self.claim.counted:
                yield self._compare(stated, rows)
                continue
            outside = self._outside(stated, rows)
            units = places.setdefault(stated.place, (stated, []))[1]
            units += [_Unit(row, row[row.index.isin(outside.index)]) for row in _each(rows)]
        for place, (stated, units) in places.items():
            said = pd.DataFrame([{"stated": stated.bound, **stated.axes}])
            yield self._count(place, fill(self.claim.says, said), units)

    def _cells_of(self, stated: Stated, cells: pd.DataFrame) -> pd.DataFrame:
        """Select the measured cells that have the knobs of ``stated``, with derived columns."""
        if cells.empty:
            return cells
        for name, value in stated.axes.items():
            column = cells[name].replace(self.reference.variants) if name == "page" else cells[name]
            cells = cells[column.isna() if value is None else column == value]
        cells = cells.dropna(subset=[self._column]).assign(stated=stated.bound)
        return self._derived(cells)

    def _derived(self, cells: pd.DataFrame) -> pd.DataFrame:
        for name, expression in self.claim.derived.items():
            values: Any = cells.eval(expression)
            cells = cells.assign(**{name: values})
        return cells

    @property
    def _column(self) -> str:
        return self.claim.measured or self.claim.quantity

    def _outside(self, stated: Stated, rows: pd.DataFrame) -> pd.DataFrame:
        return rows if rows.empty else rows[~rows[self._column].map(lambda v: agrees(stated, v))]

    def _compare(self, stated: Stated, rows: pd.DataFrame) -> Check:
        """Set the value of each of ``rows``, or their range, beside the stated one."""
        known = pd.DataFrame([stated.axes]) if rows.empty else rows
        what, said = self._what(fill(self.claim.says, known)), in_words(stated)
        if rows.empty:
            return Check(stated.place, what, said, MISSING, "not measured", self.missing)
        ours = [float(value) for value in rows[self._column]]
        outside = self._outside(stated, rows)
        text = span(ours, places_of(stated) + 1, stated.unit)
        if outside.empty and stated.value is None and not all(_within(stated, v, 0) for v in ours):
            text = f"{text} (rounded as it was stated)"
        return Check(stated.place, what, said, text, VERDICTS[outside.empty], self._why(outside))

    def _units(self, cells: pd.DataFrame) -> Iterator[_Unit]:
        """Divide ``cells`` into what the claim holds for or does not."""
        if cells.empty:
            return
        claim, cells = self.claim, self._derived(cells)
        if claim.holds:
            needed = [name for name in cells if re.search(rf"\b{name}\b", claim.holds)]
            kept = cells if claim.ours else cells.dropna(subset=needed)
            held = _meeting(kept, claim.holds).index
            yield from (_Unit(row, row[~row.index.isin(held)]) for row in _each(kept))
            return
        column = claim.rises or claim.falls
        known = cells.dropna(subset=[column]).sort_values(claim.along, kind="stable")
        for _, rows in known.groupby(claim.each, sort=False):
            steps = rows.iloc[[0, -1]] if claim.ends else rows
            values = steps[column] if claim.rises else -steps[column]
            wrong = [False, *(after <= before for before, after in pairwise(values))]
            if len(rows) > 1:
                yield _Unit(steps, steps[wrong])

    def _single(self, unit: _Unit) -> Check:
        """Return the check of one cell or group, with what is stated of it and ours."""
        claim = self.claim
        place, what = fill(claim.place, unit.rows), self._what(fill(claim.says, unit.rows))
        stated = ", ".join(fill(claim.stated, step) for step in _each(unit.rows))
        missing = [str(one) for one in unit.rows.get("missing", ()) if plain(one)]
        if missing:
            return Check(place, what, stated, MISSING, "not measured", missing[0])
        ours = ", ".join(fill(claim.ours, step) for step in _each(unit.rows))
        return Check(place, what, stated, ours, VERDICTS[unit.holds], self._why(unit.broken))

    def _count(self, place: str, says: str, units: Sequence[_Unit]) -> Check:
        """Count the units for which the claim holds; the others are named."""
        if not units:
            return Check(place, self._what(says), "yes", MISSING, "not measured", self.missing)
        broken = [unit for unit in units if not unit.holds]
        ours = f"in {len(units) - len(broken)} of {len(units)}"
        if broken:
            named = "; ".join(self._name(unit) for unit in broken[:LISTED])
            more = f"; and {len(broken) - LISTED} more" if len(broken) > LISTED else ""
            ours = f"{ours}; not in {named}{more}"
        wrong = pd.concat([unit.broken for unit in broken]) if broken else pd.DataFrame()
        return Check(place, self._what(says), "yes", ours, VERDICTS[not broken], self._why(wrong))

    def _name(self, unit: _Unit) -> str:
        name = fill(self.claim.row, unit.rows)
        if not self.claim.step:
            return name
        return f"{name} ({', '.join(fill(self.claim.step, step) for step in _each(unit.rows))})"

    def _what(self, says: str) -> str:
        return f"{says}, {self.part}" if self.part else says

    def _why(self, broken: pd.DataFrame) -> str:
        """Return why the cells ``broken`` differ: the claim's reason, then the differences."""
        if broken.empty:
            return ""
        said = [fill(self.claim.why, broken)] if self.claim.why else []
        return " ".join(said + [
            f"See \u201c{one.what}\u201d."
            for one in self.claim.see
            if not _meeting(broken, one.cells).empty
        ])  # fmt: skip


def _meeting(cells: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows of ``cells`` that meet ``condition``; all, if it is empty."""
    return cells.query(condition) if condition and not cells.empty else cells


def _each(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows one by one, each as a frame."""
    return [rows.iloc[[place]] for place in range(len(rows))]


def fill(template: str, rows: pd.DataFrame) -> str:
    """Fill in the columns of ``rows`` as `analysis.publications.reference.Claim` describes."""
    return _Filler().vformat(template, (), {str(name): rows[name] for name in rows})


class _Filler(Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        values = (plain(value) for value in kwargs[str(key)])
        return str(key), [value for value in values if value is not None]

    def format_field(self, value: Any, format_spec: str) -> str:
        name, values = value
        if not values:
            return MISSING
        if format_spec.isdigit():
            return span(values, int(format_spec), "")
        if format_spec.startswith("+"):
            return signed(values[0], int(format_spec))
        if format_spec:
            return count(int(values[0]), format_spec)
        return ", ".join(dict.fromkeys(axis_value(name, one) for one in values))


def agrees(stated: Stated, ours: float) -> bool:
    """Whether ``ours``, rounded as the publication rounds, is the value or inside the range."""
    return _within(stated, ours, 0.5 * 10.0 ** -places_of(stated))


def in_words(stated: Stated) -> str:
    """Return what is stated in words: ``1.3 s``, ``8 to 28 %``, ``at most 25 %``."""
    if stated.value is not None:
        return f"{stated.value:g} {stated.unit}"
    if stated.low is None:
        return f"at most {stated.high:g} {stated.unit}"
    if stated.high is None:
        return f"at least {stated.low:g} {stated.unit}"
    return f"{stated.low:g} to {stated.high:g} {stated.unit}"


def span(values: Sequence[float], decimals: int, unit: str) -> str:
    """Return ``values`` as one number or as a range, with the unit."""
    ends = dict.fromkeys(number(end, decimals) for end in (min(values), max(values)))
    return f"{' to '.join(ends)} {unit}".strip()


def places_of(stated: Stated) -> int:
    """Return with how many decimals it was printed."""
    printed = (one for one in (stated.value, stated.low, stated.high) if one is not None)
    return max(len(f"{one:.6f}".rstrip("0").partition(".")[2]) for one in printed)


def _within(stated: Stated, ours: float, slack: float) -> bool:
    low = stated.low if stated.value is None else stated.value
    high = stated.high if stated.value is None else stated.value
    return (low is None or ours >= low - slack) and (high is None or ours <= high + slack)
