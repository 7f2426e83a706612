"""Text tables for a terminal: aligned columns; the least important go where room is short."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and its cells; ``rank`` is how readily the column is left out, 0 for never."""

    heading: str
    cells: Sequence[str]
    rank: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        """Characters of its widest cell, or of its heading."""
        return max(map(len, (self.heading, *self.cells)))


def render_columns(columns: Sequence[Column], room: int) -> list[str]:
    """Return a table in lines of at most ``room`` characters.

    Columns that do not fit are left out, the highest rank first; what stays is whole.  Where not
    even rank 0 fits, each row becomes a sentence that names every column.
    """
    for rank in sorted({column.rank for column in columns} | {0}, reverse=True):
        kept = [column for column in columns if column.rank <= rank]
        if sum(column.width for column in kept) + len(GAP) * (len(kept) - 1) <= room:
            return align(kept)
    rows = zip(*(column.cells for column in columns), strict=True)
    headings = [column.heading for column in columns]
    sentences = (", ".join(map(" ".join, zip(headings, row, strict=True))) for row in rows)
    return [line for one in sentences for line in textwrap.wrap(one, room, break_on_hyphens=False)]


def align(columns: Sequence[Column]) -> list[str]:
    """Return the lines of a table: headings, a rule, and a line for each row."""
    padded = [
        [
            cell.ljust(column.width) if column.left else cell.rjust(column.width)
            for cell in (column.heading, "-" * column.width, *column.cells)
        ]
        for column in columns
    ]
    return [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]
