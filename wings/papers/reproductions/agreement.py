"""Verdicts: the claims of a publication held to measured cells.

A stated number agrees when ours, rounded as the publication rounds, is that number or inside the
stated range; "at least" and "at most" are held as they stand, unrounded.  A claim without a number
is counted: the cells in which it does not hold are named.

A measured column ``gain`` may have the ends of its interval beside it, ``gain_low`` and
``gain_high``; NaN where it has none.  A claim then agrees if it does everywhere in the interval,
differs if it does nowhere, and otherwise our spread is too wide to say (as in tests of equivalence:
R. L. Berger and J. C. Hsu, Statistical Science 11 (1996) 283-319).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import Formatter
from typing import Any, NamedTuple

import pandas as pd

from analysis.report.publications import StatedCheck
from analysis.words import MISSING, axis_value, count, number, signed
from testbed.base.errors import ConfigurationError
from wings.papers.published.reference import PublishedClaim, Reference
from wings.papers.published.stated import Stated
from wings.papers.reproductions.sweep import plain

LISTED = 6
NOT_MEASURED = "These results hold no proven load for it."
VALUELESS = "Its proven loads do not have this value."
ONE_POINT = "It takes two points of a line, and there is no line with two."
TOO_WIDE = "A part of our interval agrees and a part does not; more seeds (-n) make it narrower."
NONE = pd.Series(dtype=float)
STEPS = 64
"""In how many steps an interval is walked where the condition of a claim is of any shape."""
_METHOD, _GROUPED = re.compile(r"\.(\w+)\("), re.compile(r"\.groupby\((\w+)\)")
_GROUPWISE = {"astype", "where", "groupby", "transform"}
"""Methods that ask for no other rows, or for those of a group."""


def check_claims(reference: Reference, tables: Mapping[str, pd.DataFrame], part: str = "",
                 missing: str = NOT_MEASURED) -> Iterator[StatedCheck]:  # fmt: skip
    """Yield the checks of each claim about ``tables``, in the order of the publication's file.

    Args:
        reference: the publication.
        tables: measured cells by the table's name, a row for each.  Claims about a table that is
            not given are left out; about a table without rows, they are not measured.  An optional
            column ``missing`` says why a cell has no value.
        part: added to each claim, such as ``at RTT 20 ms``.
        missing: why there are no cells.

    Raises:
        ConfigurationError: a claim names a column that its table does not have.
    """
    known = {claim.quantity for claim in reference.claims}
    # A stated quantity without a claim is compared as it is, if it was measured.
    unclaimed = [PublishedClaim(says=name.replace("_", " "), quantity=name)
                 for name in dict.fromkeys(stated.quantity for stated in reference.stated)
                 if name not in known and name in tables.get("cells", ())]  # fmt: skip
    for claim in (*reference.claims, *unclaimed):
        if claim.table not in tables:
            continue
        table = tables[claim.table].reset_index(drop=True)
        used = _of_use(table, claim, reference)
        try:
            yield from _Verdict(claim, reference, part, missing).give(used)
        except (KeyError, pd.errors.UndefinedVariableError) as error:
            names = ", ".join(str(name) for name in table)
            raise ConfigurationError(
                [f"{reference.name}.toml: claim {claim.says!r}: {error}; the table "
                 f"{claim.table!r} has: {names}"]
            ) from None  # fmt: skip


def _of_use(table: pd.DataFrame, claim: PublishedClaim, reference: Reference) -> pd.DataFrame:
    """Return the columns of ``table`` that ``claim`` names: of many, an expression takes long."""
    axes = [name for stated in reference.select(claim.quantity) for name in stated.axes]
    words = " ".join(map(str, [*claim.model_dump().values(), *axes, "missing"]))
    return table[[name for name in table if re.sub("_(low|high)$", "", str(name)) in words]]


class _Unit(NamedTuple):
    """A cell, or a group of cells, that a claim is tested on, and those of them that break it.

    ``unsure`` are the cells that break it in a part of their interval only.
    """

    rows: pd.DataFrame
    broken: pd.DataFrame
    unsure: pd.DataFrame


@dataclass(frozen=True, slots=True)
class _Verdict:
    claim: PublishedClaim
    reference: Reference
    part: str
    missing: str

    def give(self, table: pd.DataFrame) -> Iterator[StatedCheck]:
        claim = self.claim
        counted: dict[tuple[str, str], tuple[list[_Unit], str]] = {}
        if claim.ours:
            yield from map(self._single, self._units(table))
        elif not claim.quantity:
            units = list(self._units(table))
            why = "" if units else self._why_missing(self._cells(table))
            counted[claim.place, claim.says] = units, why
        for stated in self.reference.select(claim.quantity):
            cells = self._stated_for(stated, _meeting(table, claim.cells))
            unit, why = self._beside(stated, cells), self._why_missing(cells)
            if not claim.counted:
                yield self._compare(stated, unit, why)
                continue
            says = fill(claim.says, pd.DataFrame([{"stated": stated.bound}]))
            counted.setdefault((stated.place, says), ([], why))[0].extend(_divide(unit))
        for (place, says), (units, why) in counted.items():
            yield self._count(place, says, units, why)

    def _stated_for(self, stated: Stated, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the cells that have the knobs of ``stated``."""
        for name, value in stated.axes.items() if len(cells) else ():
            column = cells[name].replace(self.reference.variants) if name == "page" else cells[name]
            cells = cells[column.isna() if value is None else column == value]
        return cells

    def _beside(self, stated: Stated, cells: pd.DataFrame) -> _Unit:
        """Return those of ``cells`` that have a value, and those that disagree with ``stated``."""
        if cells.empty:
            return _Unit(cells, cells, cells)
        name = self.claim.measured or self.claim.quantity
        cells = cells.dropna(subset=[name])
        low, high = _ends(cells, name)
        rows = self._derived(cells.assign(stated=stated.bound, measured=cells[name],
                                          measured_low=low, measured_high=high))  # fmt: skip
        agreements = [agree_from(stated, *ends) for ends in zip(low, high, strict=True)]
        return _Unit(
            rows, *(rows[[agreement is word for agreement in agreements]] for word in (False, None))
        )

    def _why_missing(self, cells: pd.DataFrame) -> str:
        """Return why a claim that came to nothing did: none of ``cells`` has what it takes."""
        if cells.empty:
            return self.missing
        reasons = [str(reason) for reason in cells.get("missing", ()) if plain(reason)]
        usual = ONE_POINT if self.claim.along else VALUELESS
        return " ".join(dict.fromkeys(reasons)) or usual

    def _needed(self, cells: pd.DataFrame) -> list[Any]:
        """Return the columns that the condition is about."""
        return [name for name in cells if re.search(rf"\b{name}\b", self.claim.holds)]

    def _cells(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the cells that a claim without a quantity is about."""
        return table if table.empty else _meeting(self._derived(table), self.claim.cells)

    def _derived(self, cells: pd.DataFrame) -> pd.DataFrame:
        for name, expression in self.claim.derived.items():
            cells = _derive(cells, name, expression)
        return cells

    def _points(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of ``table``, derived columns and all, for each step of their intervals.

        What asks for other rows is derived of those of its own step: by groups that are of one, or
        of each step alone.
        """
        steps = list(_walk_intervals(table))
        points, moving = pd.concat(steps), set(_with_intervals(table))
        step = pd.Series(range(len(steps)), dtype=str).repeat(len(table)).set_axis(points.index)
        for name, expression in self.claim.derived.items():
            if moving.isdisjoint(re.findall(r"\w+", expression)):
                table = _derive(table, name, expression)
                values = pd.concat([table[name]] * len(steps))
            else:
                moving.add(name)
                keys, methods = _GROUPED.findall(expression), _METHOD.findall(expression)
                known = _GROUPWISE.issuperset(methods) and methods.count("groupby") == len(keys)
                rows = len(points) if known else len(table)
                words = _GROUPED.sub(r".groupby(\1_in_step)", expression)
                grouped = points.assign(**{
                    f"{key}_in_step": points[key].map(str, na_action="ignore") + " " + step
                    for key in keys
                })  # fmt: skip
                parts = (grouped[at : at + rows] for at in range(0, len(points), rows))
                values = pd.concat([_derive(part, name, words)[name] for part in parts])
            points = points.assign(**{name: values.to_numpy()})
        return points

    def _units(self, table: pd.DataFrame) -> Iterator[_Unit]:
        """Divide the cells into the units that the claim is tested on: single ones, or groups."""
        if table.empty:
            return
        claim = self.claim
        cells = self._cells(table)
        if claim.holds:
            measured = cells if claim.ours else cells.dropna(subset=self._needed(cells))
            points = self._points(table)
            points = points[points.index.isin(measured.index)]
            holding = _meeting(points, claim.holds).index.value_counts()
            share = holding.reindex(measured.index, fill_value=0) / points.index.value_counts()
            yield from _divide(
                _Unit(measured, measured[share == 0], measured[(share > 0) & (share < 1)])
            )
            return
        column = claim.rises or claim.falls
        ordered = cells.dropna(subset=[column]).sort_values(claim.along, kind="stable")
        for _, rows in ordered.groupby(claim.each, sort=False):
            if len(rows) < 2:
                continue
            steps = rows.iloc[[0, -1]] if claim.ends else rows
            low, high = _ends(steps, column)
            ends = zip(low, high, strict=True) if claim.rises else zip(-high, -low, strict=True)
            pairs = list(pairwise(ends))
            wrong = [False, *(after[1] <= before[0] for before, after in pairs)]
            unsure = [False, *(after[0] <= before[1] and after[1] > before[0]
                               for before, after in pairs)]  # fmt: skip
            yield _Unit(steps, steps[wrong], steps[unsure])

    def _compare(self, stated: Stated, unit: _Unit, why: str) -> StatedCheck:
        """Set the values of a unit, or their range, beside the stated one."""
        rows, broken, _ = unit
        claim_text = fill(self.claim.says, pd.DataFrame([stated.axes]) if rows.empty else rows)
        if rows.empty:
            return self._missing(stated.place, claim_text, in_words(stated), why)
        ours = [float(value) for value in rows["measured"]]
        text = span(ours, stated.decimals + 1, stated.unit)
        least, most = _bounds(stated, 0)
        inside = least <= min(ours) and max(ours) <= most
        if broken.empty and stated.value is None and not inside:
            text = f"{text} (rounded as it was stated)"
        ends = [*rows["measured_low"], *rows["measured_high"]]
        if min(ends) < min(ours) or max(ends) > max(ours):
            text = f"{text} (interval {span(ends, stated.decimals + 1, stated.unit)})"
        return self._check(stated.place, claim_text, in_words(stated), text, unit)

    def _single(self, unit: _Unit) -> StatedCheck:
        """Return the check of one cell or group: the stated value and ours."""
        claim, rows = self.claim, unit.rows
        place, claim_text = fill(claim.place, rows), fill(claim.says, rows)
        stated, ours = (", ".join(fill(template, step) for step in _each(rows)) if "{" in template
                        else template for template in (claim.stated, claim.ours))  # fmt: skip
        if rows[self._needed(rows)].isna().to_numpy().any():
            return self._missing(place, claim_text, stated, self._why_missing(rows))
        return self._check(place, claim_text, stated, ours, unit)

    def _count(self, place: str, says: str, units: Sequence[_Unit], why: str) -> StatedCheck:
        """Count the units for which the claim holds; the others are named."""
        if not units:
            return self._missing(place, says, "yes", why)
        wrong = [unit for unit in units if not unit.broken.empty]
        unsure = [unit for unit in units if unit.broken.empty and not unit.unsure.empty]
        ours = f"in {len(units) - len(wrong) - len(unsure)} of {len(units)}"
        if unsure:
            ours += f"; too wide to say in {self._list(unsure)}"
        if wrong:
            ours += f"; not in {self._list(wrong)}"
        joined = (pd.concat(parts) for parts in zip(*units, strict=True))
        return self._check(place, says, "yes", ours, _Unit(*joined))

    def _list(self, units: Sequence[_Unit]) -> str:
        named = "; ".join(self._name(unit.rows) for unit in units[:LISTED])
        return f"{named}; and {len(units) - LISTED} more" if len(units) > LISTED else named

    def _name(self, rows: pd.DataFrame) -> str:
        steps = ", ".join(fill(self.claim.step, step) for step in _each(rows))
        return f"{fill(self.claim.row, rows)} ({steps})" if steps else fill(self.claim.row, rows)

    def _missing(self, place: str, says: str, stated: str, why: str) -> StatedCheck:
        return StatedCheck(place, self._in_part(says), stated, MISSING, "not measured", why)

    def _check(self, place: str, says: str, stated: str, ours: str, unit: _Unit) -> StatedCheck:
        claim_text, breaking = self._in_part(says), unit.broken
        if breaking.empty:
            if unit.unsure.empty:
                return StatedCheck(place, claim_text, stated, ours, "agrees")
            return StatedCheck(
                place, claim_text, stated, ours, "our spread is too wide to say", TOO_WIDE
            )
        reasons = [fill(self.claim.why, breaking)] if self.claim.why else []
        reasons += [f"See \u201c{difference.what}\u201d." for difference in self.claim.see
                    if not _meeting(breaking, difference.cells).empty]  # fmt: skip
        return StatedCheck(place, claim_text, stated, ours, "differs", " ".join(reasons))

    def _in_part(self, says: str) -> str:
        return f"{says}, {self.part}" if self.part else says


def _meeting(cells: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows of ``cells`` that meet ``condition``; all, if it is empty."""
    return cells.query(condition) if condition and not cells.empty else cells


def _ends(cells: pd.DataFrame, name: str) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return both ends of the interval of column ``name``; a value without one is both ends."""
    low, high = (cells[end].fillna(cells[name]) if end in cells else cells[name]
                 for end in (f"{name}_low", f"{name}_high"))  # fmt: skip
    return low, high


def _walk_intervals(cells: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield ``cells`` for each step through their intervals; once if no column has any.

    All columns of all rows move together from one end of their intervals to the other.
    """
    yield cells
    names = _with_intervals(cells)
    steps = range(STEPS + 1) if names else ()
    ends = {name: _ends(cells, name) for name in names}
    for step in steps:
        yield cells.assign(**{name: low + (high - low) * (step / STEPS)
                              for name, (low, high) in ends.items()})  # fmt: skip


def _derive(cells: pd.DataFrame, name: str, expression: str) -> pd.DataFrame:
    values: Any = cells.eval(expression)
    return cells.assign(**{name: values})


def _with_intervals(cells: pd.DataFrame) -> list[str]:
    return [name for name in map(str, cells) if cells.get(f"{name}_low", NONE).notna().any()]


def _divide(unit: _Unit) -> list[_Unit]:
    return [_Unit(row, *(row[row.index.isin(part.index)] for part in unit[1:]))
            for row in _each(unit.rows)]  # fmt: skip


def _each(rows: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows.iloc[[place]] for place in range(len(rows))]


def fill(template: str, rows: pd.DataFrame) -> str:
    """Fill in the columns of ``rows`` as ``PublishedClaim`` describes."""
    columns: Any = rows  # a mapping of names to columns, as far as a formatter asks
    return _Filler().vformat(template, (), columns)


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
        return ", ".join(dict.fromkeys(axis_value(name, item) for item in values))


def agree_from(stated: Stated, low: float, high: float) -> bool | None:
    """Whether all values from ``low`` to ``high`` agree; ``None`` if some do and some do not."""
    least, most = _bounds(stated, _rounding_of(stated))
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def in_words(stated: Stated) -> str:
    """Return the stated value in words: ``1.30 s``, ``8 to 28 %``, ``at most 25 %``."""
    value, low, high = (None if end is None else f"{end:.{stated.decimals}f}"
                        for end in (stated.value, stated.low, stated.high))  # fmt: skip
    if low is None or high is None:
        value = value or (f"at most {high}" if low is None else f"at least {low}")
    return f"{value or f'{low} to {high}'} {stated.unit}"


def span(values: Sequence[float], decimals: int, unit: str) -> str:
    """Return ``values`` as one number or as a range, with the unit."""
    ends = dict.fromkeys(number(end, decimals) for end in (min(values), max(values)))
    return f"{' to '.join(ends)} {unit}".strip()


def _rounding_of(stated: Stated) -> float:
    """Return the rounding error of a value that is printed as the stated one; 0 of a bound."""
    if stated.value is None and (stated.low is None or stated.high is None):
        return 0.0
    return 0.5 * 10.0**-stated.decimals


def _bounds(stated: Stated, slack: float) -> tuple[float, float]:
    """Return the least and the greatest value that agree, ``slack`` added on both sides."""
    low = stated.low if stated.value is None else stated.value
    high = stated.high if stated.value is None else stated.value
    return (-math.inf if low is None else low - slack, math.inf if high is None else high + slack)
