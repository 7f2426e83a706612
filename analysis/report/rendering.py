"""Templates of the pages that people read, and the filters that all of them have."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
)

from analysis import words
from analysis.records.kind import analysis_of
from analysis.report.publications import Grid
from analysis.words import MINUS, MISSING, clean
from testbed.kinds import KINDS

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = ("axis_name", "axis_value", "number", "signed", "seconds", "significant", "clean",
           "count", "capitalised")  # fmt: skip
MOST_ROWS = 2_000
"""Of a table in a page; with more it would be of megabytes that nobody reads."""
DIGITS = 5
MAX_PLACES = 6


@functools.cache
def open_templates(*folders: Path) -> Environment:
    """Return the templates, compiled once: all is escaped, nothing undefined, equal JSON for equal.

    ``folders`` have further ones; kinds of trial have ``KIND/report.html.jinja`` and its parts.
    """
    of_kinds = PrefixLoader({kind: PackageLoader(analysis_of(kind), "") for kind in KINDS})
    loader = ChoiceLoader((FileSystemLoader((TEMPLATES, *folders)), of_kinds))
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {name: getattr(words, name) for name in FILTERS}
    environment.filters["fields"] = format_grid
    environment.filters["shown"] = shown
    environment.globals["most_rows"] = MOST_ROWS
    return environment


def shown(rows: Sequence[Any]) -> Sequence[Any]:
    """Return the rows of a table that are in a page."""
    return rows[:MOST_ROWS]


def format_grid(grid: Grid) -> list[list[str]]:
    """Return the rows of ``grid`` as text; numbers have five significant digits at most."""
    columns = [[row[place] for row in grid.rows] for place in range(len(grid.columns))]
    texts = [[_text(value, _places(column)) for value in column] for column in columns]
    return [list(row) for row in zip(*texts, strict=True)]


def _places(column: Sequence[str | float | None]) -> int:
    """Return how many decimals the column's numbers need."""
    shown = [f"{value:.{DIGITS}g}" for value in column if isinstance(value, float)]
    decimals = [len(text.partition(".")[2]) for text in shown if "e" not in text]
    return min(max(decimals, default=0), MAX_PLACES)


def _text(value: str | float | None, places: int) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        return clean(value)
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{places}f}"
    return text.replace("-", MINUS)
