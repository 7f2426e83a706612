"""Figure of what a change does to page loads: a bar for each kernel, or each value of a knob.

    python -P -m wings.kernels.verdicts.figure FILE KNOB DIR|AXIS=DIR...

writes FILE, an SVG drawing, with a bar for each value of KNOB, such as ``loss_pct``, side by side.
DIR is a run on several kernels, which are compared with the first; AXIS=DIR is a run that sweeps
the knob AXIS, whose values are compared with the greatest.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.plot.bars import paired
from analysis.plot.chart import Plot, draw
from analysis.plot.rows import Row, panel_text
from analysis.records.cells import Cell, cells_of, key_of
from analysis.records.results import read_results
from analysis.stats.shift import shift_between
from testbed.base.errors import ConfigurationError
from testbed.base.whole_file import write_whole
from wings.kernels.verdicts.document import AttributionDocument

NAME = "kernels.json"
CHANGE = "Change of the page load time (%)"


class CellChange(NamedTuple):
    """One cell: what was changed, under which value of the figure's knob, and what it came to."""

    what: str
    condition: str
    pct: float


def read_changes(runs: Sequence[str], knob: str) -> list[CellChange]:
    """Return the changes of every cell of runs, each asked for as ``DIR`` or ``AXIS=DIR``.

    Cells without a number, such as broken ones, are left out.

    Raises:
        ConfigurationError: with a sentence for each run that cannot be read as asked.
    """
    changes: list[CellChange] = []
    problems: list[str] = []
    for run in runs:
        axis, equals, folder = run.rpartition("=")
        if equals:
            changes += _of_axis(cells_of(read_results(Path(folder))), axis, knob)
            continue
        file = Path(folder) / NAME
        if file.is_file():
            changes += _of_kernels(json.loads(file.read_text("utf-8")), knob)
        else:
            problems.append(
                f"{folder}: no {NAME}; name a run on several kernels (kernel.versions), or AXIS=DIR"
            )
    if problems:
        raise ConfigurationError(problems)
    return changes


def draw_changes(changes: Iterable[CellChange], title: str = "") -> Plot:
    """Draw the mean change of the cells as bars, and the least and the greatest as a thin line.

    Raises:
        ConfigurationError: there is nothing to draw.
    """
    cells: dict[tuple[str, str], list[float]] = {}
    for change in changes:
        cells.setdefault((change.what, change.condition), []).append(change.pct)
    variants = list(dict.fromkeys(variant for variant, _ in cells))
    conditions = list(dict.fromkeys(condition for _, condition in cells))
    rows: list[Row] = [{"change": variant, "condition": condition,
                        CHANGE: statistics.fmean(percents), "least": min(percents),
                        "greatest": max(percents)} for variant in variants
                       for condition in conditions
                       if (percents := cells.get((variant, condition)))]  # fmt: skip
    if not rows:
        raise ConfigurationError(["no cell of these runs has a change: there is nothing to draw"])
    return paired(rows, "change", CHANGE, "condition", title, ("least", "greatest"))


def _of_kernels(run: AttributionDocument, knob: str) -> Iterator[CellChange]:
    for kernel in run["kernels"]:
        for cell in kernel["cells"]:
            shift = (cell["attribution"] or {}).get("pct")
            if shift is not None:
                condition = panel_text(knob, cell["condition"].get(knob))
                yield CellChange(kernel["name"], condition, shift["value"])


def _of_axis(cells: Sequence[Cell], axis: str, knob: str) -> Iterator[CellChange]:
    values = sorted({cell.axes[axis] for cell in cells if axis in cell.axes})
    if len(values) < 2:
        raise ConfigurationError([f"{axis}: the run does not sweep it; name a knob that it sweeps"])
    bases = {key_of(cell.axes, (axis,)): cell for cell in cells if cell.axes[axis] == values[-1]}
    for cell in cells:
        base = bases.get(key_of(cell.axes, (axis,)))
        if base is None or base is cell:
            continue
        shift = shift_between(base.by_seed, cell.by_seed)
        if shift is not None:
            condition = panel_text(knob, cell.axes.get(knob))
            yield CellChange(panel_text(axis, cell.axes[axis]), condition, -shift.percent.value)


if __name__ == "__main__":
    file, by, *runs = sys.argv[1:]
    figure = draw(draw_changes(read_changes(runs, by)))
    write_whole(Path(file), f"{figure}\n", "name a file in a folder that is there")
