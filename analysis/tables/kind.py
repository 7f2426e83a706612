"""Description of a kind of trial for its tables: axes, rows, and its part of the summary.

That of the kind NAME is in ``analysis/kinds/NAME/tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from analysis.records.cells import Cell
from analysis.records.kind import read_description
from testbed.model import Record

if TYPE_CHECKING:
    from analysis.tables.table import ResultTable

Row = dict[str, Any]
"""A row by column."""
Columns = Mapping[str, str]
"""What each column of a row holds, after those of its axes."""


def _no_part(_of: Cell | Record) -> Row:
    return {}


@dataclass(frozen=True, slots=True)
class TableKind:
    """What tables and summaries of a kind show.

    Attributes:
        axes: those that each table begins with, whatever else varies.
        trials: its trials in the middle of a sentence: ``loads on a server``.
        columns: the columns of its rows, by what the rows are of, for the reference.
        rows: makes the rows, of other columns than the medians of its metrics.
        unless_default: defaults of knobs that a table shows where a cell has another value.
        side_by_side: whether a table has all metrics; else those beside the first have their own.
        performer: what performs its trials, where no knob names a client.
        on_one_page: whether the results of several kernels go into one figure, on a page of theirs.
        of_cell: what the summary has of a cell beside what all kinds have.
        of_trial: what it has of a trial whose outcome is ``ok``.
        cell_fields: the type of ``of_cell``, which describes its fields.
        trial_fields: the type of ``of_trial``.
    """

    axes: tuple[str, ...]
    trials: str
    columns: Mapping[str, Columns]
    rows: Callable[[ResultTable], list[Row]] | None = None
    unless_default: Mapping[str, Any] = field(default_factory=dict)
    side_by_side: bool = True
    performer: str = ""
    on_one_page: bool = False
    of_cell: Callable[[Cell], Row] = _no_part
    of_trial: Callable[[Record], Row] = _no_part
    cell_fields: type | None = None
    trial_fields: type | None = None


def defaults_of(spec: type, *knobs: str) -> dict[str, Any]:
    """Return the defaults of ``knobs``, which are fields of ``spec``."""
    defaults = {knob.name: knob.default for knob in fields(spec)}
    return {knob: defaults[knob] for knob in knobs}


def tables_of(kind: str) -> TableKind:
    """Return the description of a kind for its tables.

    Raises:
        ConfigurationError: there is no such kind.
    """
    description: TableKind = read_description(kind, "tables")
    return description
