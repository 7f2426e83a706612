"""What an experiment swept, and how its cells divide into panels of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.records.cells import Axes, Cell
from analysis.tables.table import Pair, Table
from analysis.words import axis_value, axis_word

PAGE = "page"
CONDITION = "condition"
PLT_MS = "plt_ms"
PLT_S = "Page load time (s)"
SAVED = "Time saved (%)"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the result table by its axes: one cell, or both arms of a pair."""

    axes: Axes
    cells: tuple[Cell, ...]
    pair: Pair | None = None


def rows_of(table: Table) -> tuple[Row, ...]:
    """The rows of ``table`` in its order."""
    if table.paired:
        return tuple(
            Row(pair.axes, tuple(cell for _, cell in pair.arms if cell), pair)
            for pair in table.pairs
        )
    return tuple(Row(cell.axes, (cell,)) for cell in table.cells)


def swept(rows: Sequence[Row]) -> tuple[str, ...]:
    """The axes on which ``rows`` differ, without the page, in declared order."""
    names = dict.fromkeys(name for row in rows for name in row.axes)
    return tuple(n for n in names if n != PAGE and len(values_of(rows, n)) > 1)


def values_of(rows: Iterable[Row], name: str) -> list[Any]:
    """The values of an axis: numbers in rising order and what is no number after them."""
    values: list[Any] = list(dict.fromkeys(row.axes.get(name) for row in rows))
    numbers = sorted(value for value in values if _is_number(value))
    return [*numbers, *(value for value in values if not _is_number(value))]


def is_scale(rows: Iterable[Row], name: str) -> bool:
    """Whether an axis has numbers only; no limit at all may be among them."""
    values = values_of(rows, name)
    return any(map(_is_number, values)) and all(_is_number(v) or v is None for v in values)


def panels_of(rows: Iterable[Row], names: Sequence[str]) -> list[list[Row]]:
    """``rows`` in groups that are equal in the axes ``names``, in the order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.axes.get(name) for name in names), []).append(row)
    return list(groups.values())


def saved_pct(row: Row) -> float | None:
    """What Fast Open saves in percent: the median over the seeds proven both ways, if any is."""
    gain = row.pair.improvement_pct if row.pair else None
    return gain.median if gain else None


def title_of(axes: Axes, names: Sequence[str]) -> str:
    """The values of the axes ``names`` in words, as ``amazon, RTT 100 ms``."""
    return ", ".join(
        axis_value(name, axes.get(name))
        if name == PAGE
        else f"{axis_word(name)} {axis_value(name, axes.get(name))}"
        for name in names
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
