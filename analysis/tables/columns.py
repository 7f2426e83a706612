"""Text tables for a terminal: aligned columns; the least important go where room is short."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.words import axis_value, axis_word

GAP = "  "
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, which may have several lines, and its cells.

    ``rank`` is how readily the column is left out, 0 for never.  Cells of text may be cut to
    ``least`` characters before any column is left out; ``None``: they are whole.
    """

    heading: str
    cells: Sequence[str]
    rank: int = 0
    left: bool = False
    least: int | None = None

    @property
    def width(self) -> int:
        """Characters of its widest cell, or of its heading."""
        return max(map(len, (*self.heading.split("\n"), *self.cells)))

    def folded(self) -> Column:
        """Return the column with its heading in so many lines that it is no wider than needed."""
        width = max(map(len, (*self.heading.split(), *self.cells)), default=0)
        return replace(self, heading="\n".join(textwrap.wrap(self.heading, max(width, 1))))

    def narrowed(self, by: int) -> Column:
        """Return the column, cut by as many characters as it may be, but at most ``by``."""
        if self.least is None or by <= 0:
            return self
        width = max(self.width - by, self.least, *map(len, self.heading.split("\n")))
        cut = [c if len(c) <= width else f"{c[: width - 1].rstrip()}{ELLIPSIS}" for c in self.cells]
        return replace(self, cells=cut)


def axis_columns(names: Sequence[str], cells: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return a column for each of the axes ``names``, of cells by their values on them."""
    return [
        Column(axis_word(name), [axis_value(name, axes.get(name)) for axes in cells],
               left=name == "page")
        for name in names
    ]  # fmt: skip


def render_columns(columns: Sequence[Column], room: int) -> list[str]:
    """Return a table in lines of at most ``room`` characters.

    Where they do not fit, columns are cut as far as they may be, then left out, the highest rank
    first.  Where not even rank 0 fits, the same is tried with headings of several lines, and then
    each row becomes a sentence that names every column.
    """
    for shown in (columns, [column.folded() for column in columns]):
        for rank in sorted({column.rank for column in columns} | {0}, reverse=True):
            kept = [column for column in shown if column.rank <= rank]
            for place, column in enumerate(kept):
                kept[place] = column.narrowed(_width(kept) - room)
            if _width(kept) <= room:
                return align(kept)
    rows = zip(*(column.cells for column in columns), strict=True)
    headings = [column.heading for column in columns]
    sentences = (", ".join(map(" ".join, zip(headings, row, strict=True))) for row in rows)
    return [
        line
        for sentence in sentences
        for line in textwrap.wrap(sentence, room, break_on_hyphens=False)
    ]


def align(columns: Sequence[Column]) -> list[str]:
    """Return the lines of a table: headings, a rule, and a line for each row."""
    heads = [column.heading.split("\n") for column in columns]
    deepest = max(map(len, heads), default=0)
    padded = [
        [
            cell.ljust(column.width) if column.left else cell.rjust(column.width)
            for cell in (*[""] * (deepest - len(head)), *head, "-" * column.width, *column.cells)
        ]
        for head, column in zip(heads, columns, strict=True)
    ]  # fmt: skip
    return [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)
