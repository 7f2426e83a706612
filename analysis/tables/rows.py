"""The results table as rows of ``table.csv``: exact numbers, one column for each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.records.cells import Axes, Cell, Spread
from analysis.records.kind import records_of
from analysis.records.metric import Metric
from analysis.tables.kind import Columns, Row, tables_of
from analysis.tables.table import ResultTable
from analysis.words import capitalised

COUNTS: Columns = {
    "planned": "Trials that were planned.",
    "proven": "Trials that are proven, and so count.",
}
ENDS: Columns = {
    "status": "`proven` (every trial is), how many count and what became of the others, with "
    "`median not safe` if it could lie outside its interval had they counted, or what happened.",
    "problems": "What lab and packet capture hold against trials that do not count.",
}
"""The last columns of a row."""


def describe_metrics(metrics: Iterable[Metric]) -> Columns:
    """Return what the columns of rows with one median for each metric hold."""
    medians = {
        metric.name: f"{capitalised(metric.label)}: the median of the proven trials."
        for metric in metrics
    }
    return {**medians, **COUNTS, **ENDS}


def table_rows(table: ResultTable) -> list[Row]:
    """Return the rows of ``table.csv`` with exact numbers; a missing value is ``None``."""
    make = tables_of(table.kind).rows
    if make is not None:
        return make(table)
    metrics = records_of(table.kind).metrics
    return [
        row_of(cell, table.axes, {m.name: median_of(cell.by(m).spread) for m in metrics})
        for cell in table.cells
    ]


def row_of(cell: Cell, axes: Sequence[str], values: Mapping[str, Any]) -> Row:
    """Return the row of a cell: its axes, ``values``, and what became of its trials."""
    return {**shown_axes(cell.axes, axes), **values, "planned": cell.planned,
            "proven": len(cell.proven), "status": cell.status,
            "problems": " | ".join(cell.problems)}  # fmt: skip


def shown_axes(axes: Axes, names: Sequence[str]) -> Row:
    """Return the first columns of a row."""
    return {name: axes.get(name) for name in names}


def median_of(spread: Spread | None) -> float | None:
    """Return the median, if there is one."""
    return spread.median if spread else None


def render_csv(table: ResultTable) -> str:
    """Return ``table.csv``: ms to the nanosecond, percent to four places, missing values empty."""
    rows = table_rows(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    for row in rows:
        writer.writerow(_format(name, value) for name, value in row.items())
    return text.getvalue()


def _format(column: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return trimmed(float(value), 4 if column.endswith("_pct") else 6)
    # Surrogates cannot be written, and a line break would end the row for simpler readers.
    text = str(value).encode("utf-8", "replace").decode()
    return " ".join(text.split())


def trimmed(value: float, places: int) -> str:
    """Return ``value`` with at most ``places`` decimals and no trailing zeros."""
    text = f"{value:.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
