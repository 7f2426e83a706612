"""The fields of a rebuilt table as text: the numbers of a column share their decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.words import MINUS, MISSING, clean

if TYPE_CHECKING:
    from analysis.rebuilt.rebuilt import Grid

DIGITS = 5
MAX_PLACES = 6
Value = str | float | int | None


def format_grid(grid: Grid) -> list[list[str]]:
    """Return the rows of ``grid`` as text; numbers have five significant digits at most."""
    columns = [[row[place] for row in grid.rows] for place in range(len(grid.columns))]
    texts = [[_text(value, _places(column)) for value in column] for column in columns]
    return [list(row) for row in zip(*texts, strict=True)]


def _places(column: list[Value]) -> int:
    """How many decimals the column's numbers need."""
    shown = [f"{value:.{DIGITS}g}" for value in column if isinstance(value, float)]
    decimals = [len(text.partition(".")[2]) for text in shown if "e" not in text]
    return min(max(decimals, default=0), MAX_PLACES)


def _text(value: Value, places: int) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        return clean(value)
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{places}f}"
    return text.replace("-", MINUS)
