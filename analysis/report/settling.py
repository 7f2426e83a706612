"""Stopping rule of a run: are its intervals as narrow as asked (``--until-ci``)?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from analysis.records.cells import Cell, cells_of
from analysis.records.results import gather_results
from analysis.stats.estimates import LEAST_FOR_LEVEL, LEVEL, Interval
from analysis.tables.table import ResultTable, make_table
from analysis.words import axis_value
from testbed.model import Experiment, Record


def list_unsettled(experiment: Experiment, records: Sequence[Record]) -> tuple[str, ...]:
    """Name each interval of the table that is wider than the experiment's ``until_ci_pct``.

    A median's half-width is in percent of the median, that of Fast Open's shift in percent of the
    load time without.  A cell without a proven load is not waited for: it never settles, and the
    exit code tells what became of it.  One in which nothing varies between seeds has settled.  The
    mean is left out, since one outlier decides its width.

    Raises:
        ConfigurationError: the records must not be pooled.
    """
    until_pct = experiment.until_ci_pct
    if until_pct is None:
        return ()
    results = gather_results(Path(), records, {"experiment": asdict(experiment)})
    return wide_intervals(make_table(cells_of(results), None), until_pct)


def wide_intervals(table: ResultTable, asked_pct: float) -> tuple[str, ...]:
    """Name each interval of ``table`` with a half-width of more than ``asked_pct``."""
    return tuple(
        f"{name} (+-{width:.2g} %)" if width is not None else f"{name} (too few loads)"
        for name, width in _widths(table)
        if width is None or width > asked_pct
    )


def _widths(table: ResultTable) -> Iterator[tuple[str, float | None]]:
    """Yield each interval's name and half-width in percent; ``None`` if it is none of 95 %."""
    for cell in table.cells:
        if cell.sample is not None and cell.sample.median.value > 0:
            name = table.name_row(cell.axes)
            if table.paired:
                name += f", Fast Open {axis_value('tfo', cell.axes['tfo'])}"
            width = _percent(cell.sample.median.interval, cell.sample.median.value)
            yield name, 0.0 if _is_constant(cell) else width
    for pair in table.pairs:
        if pair.shift is not None:
            name = f"{table.name_row(pair.axes)}, time saved"
            constant = all(cell is not None and _is_constant(cell) for _, cell in pair.arms)
            yield name, 0.0 if constant else _percent(pair.shift.percent.interval, 100.0)


def _is_constant(cell: Cell) -> bool:
    """Return whether more loads would be the same: of copies, or of enough equal ones."""
    return cell.varies is False and (cell.copied or len(cell.proven) >= LEAST_FOR_LEVEL)


def _percent(interval: Interval | None, whole: float) -> float | None:
    if interval is None or interval.level < LEVEL:
        return None
    return interval.half_width / whole * 100.0
