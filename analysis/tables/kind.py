"""Description of a kind of trial for its tables: rows, and its part of the summary.

That of the kind NAME is in ``analysis/kinds/NAME/tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.records.cells import Cell
from analysis.records.kind import read_description
from analysis.tables.table import ResultTable
from testbed.model import Record

Row = dict[str, Any]
"""A row by column."""
Columns = Mapping[str, str]
"""What each column of a row holds, after those of its axes."""


@dataclass(frozen=True, slots=True)
class TableKind:
    """What tables and summaries of a kind show.

    Attributes:
        trials: its trials in the middle of a sentence: ``loads on a server``.
        columns: the columns of its rows, by what the rows are of, for the reference.
        rows: makes the rows, of other columns than the medians of its metrics.
        performer: what performs its trials, where no knob names a client.
        on_one_page: whether the results of several kernels go into one figure, on a page of theirs.
        of_cell: what the summary has of a cell beside what all kinds have.
        of_trial: what it has of a trial whose outcome is ``ok``.
        cell_fields: the type of ``of_cell``, which describes its fields.
        trial_fields: the type of ``of_trial``.
    """

    trials: str
    columns: Mapping[str, Columns]
    rows: Callable[[ResultTable], list[Row]] | None = None
    performer: str = ""
    on_one_page: bool = False
    of_cell: Callable[[Cell], Row] = lambda _cell: {}
    of_trial: Callable[[Record], Row] = lambda _record: {}
    cell_fields: type | None = None
    trial_fields: type | None = None


def tables_of(kind: str) -> TableKind:
    """Return the description of a kind for its tables.

    Raises:
        ConfigurationError: there is no such kind.
    """
    description: TableKind = read_description(kind, "tables")
    return description
