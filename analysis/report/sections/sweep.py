"""What an experiment swept, and the figures that its rows divide into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from analysis import plot
from analysis.plot.rows import is_number
from analysis.records.cells import Axes, Cell, find_varying
from analysis.tables.table import Pair, ResultTable

PAGE = "page"
CONDITION = "condition"
PLT_MS = "plt_ms"
PLOT_PX = (262, 190)
"""A plot so wide and high: with its labels it fits into 390 px unscaled, three into a desk's."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A row of the result table by its axes: one cell, or both arms of a pair."""

    axes: Axes
    cells: tuple[Cell, ...]
    pair: Pair | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure; ``draw`` makes it, which takes a while.

    ``caption`` is a sentence below.  ``title`` is a heading above that may wrap, which text inside
    of a figure cannot; it is empty where the figure has its own.
    """

    draw: Callable[[], plot.Plot]
    caption: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure: ``plan`` returns its panels for the rows of a table, or none.

    ``note`` says once for all of them what they show.  ``small``: they take no room from others.
    """

    anchor: str
    title: Callable[[Sequence[SweepRow]], str]
    note: str
    plan: Callable[[Sequence[SweepRow]], tuple[Panel, ...]]
    small: bool = False


def rows_of(table: ResultTable) -> tuple[SweepRow, ...]:
    """Return the rows of ``table`` in its order."""
    if table.paired:
        return tuple(
            SweepRow(pair.axes, tuple(cell for _, cell in pair.arms if cell), pair)
            for pair in table.pairs
        )
    return tuple(SweepRow(cell.axes, (cell,)) for cell in table.cells)


def swept(rows: Sequence[SweepRow]) -> tuple[str, ...]:
    """Return the axes on which ``rows`` differ, without the page, in declared order."""
    return tuple(n for n in find_varying([row.axes for row in rows]) if n != PAGE)


def values_of(rows: Iterable[SweepRow], name: str) -> list[Any]:
    """Return the values of an axis: rising numbers, and after them what is no number."""
    values: list[Any] = list(dict.fromkeys(row.axes.get(name) for row in rows))
    numbers = sorted(value for value in values if is_number(value))
    return [*numbers, *(value for value in values if not is_number(value))]


def is_scale(rows: Iterable[SweepRow], name: str) -> bool:
    """Return whether an axis has numbers only; "no limit" may be among them."""
    values = values_of(rows, name)
    return any(map(is_number, values)) and all(is_number(v) or v is None for v in values)


def panels_of(rows: Iterable[SweepRow], names: Sequence[str]) -> list[list[SweepRow]]:
    """Return ``rows`` in groups that are equal in the axes ``names``, in order of appearance."""
    groups: dict[tuple[Any, ...], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row.axes.get(name) for name in names), []).append(row)
    return list(groups.values())


def spread_over(items: Sequence[T], most: int) -> list[T]:
    """Return ``most`` of ``items`` at even distances, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return list(items[:most])
    return [items[round(place * (len(items) - 1) / (most - 1))] for place in range(most)]
