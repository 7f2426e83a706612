"""Figures of page loads: load times and what Fast Open saves, over what was swept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from analysis.kinds.page_load.conditions import BARS, INTERVALS, LOADS, REQUESTS
from analysis.kinds.page_load.critical_path import PATHS
from analysis.kinds.page_load.queues import WAITS
from analysis.kinds.page_load.records import PAINT_GRAIN_MS, call_delay_ms
from analysis.kinds.page_load.visitor import FIRST_PAINT
from analysis.records.metric import PLT, Metric
from analysis.report.sections.scales import Quantity, line_axis, map_axes, plan_lines, plan_maps
from analysis.report.sections.sweep import PLT_MS, FigureKind, SweepRow
from analysis.tables.table import PAIR_AXIS
from analysis.words import axis_word

PLT_S = "Page load time (s)"
SAVED = "Time saved (%)"


def _metric(row: SweepRow, metric: Metric) -> Iterator[tuple[bool | None, float]]:
    for cell in row.cells:
        for value in cell.by(metric).by_seed.values():
            yield (bool(cell.axes[PAIR_AXIS]) if row.pair else None), value


def _call_ms(row: SweepRow) -> Iterator[tuple[bool | None, float]]:
    """Yield the delay of the call beside each load in ms (`call_delay_ms`)."""
    for cell in row.cells:
        for record in cell.proven:
            if (delay_ms := call_delay_ms(record)) is not None:
                yield (bool(cell.axes[PAIR_AXIS]) if row.pair else None), delay_ms


def _median_s(row: SweepRow) -> Iterator[tuple[None, float]]:
    """Yield the median of the load times in s; of a pair, of those without Fast Open."""
    plt = row.pair.spread_off if row.pair else row.cells[0].spread
    if plt:
        yield None, plt.median / 1000.0


def _saved_pct(row: SweepRow) -> Iterator[tuple[None, float]]:
    """Yield what Fast Open saves in percent: the median over the seeds proven both ways."""
    gain = row.pair.improvement_pct if row.pair else None
    if gain:
        yield None, gain.median


def _map_title(what: str, rows: Sequence[SweepRow]) -> str:
    return f"{what} by {' and '.join(map(axis_word, map_axes(rows) or ()))}"


def _line_title(what: str, rows: Sequence[SweepRow]) -> str:
    return f"{what} over {axis_word(line_axis(rows) or '')}"


_SAVINGS = (
    "Improvement of the page load time in percent of that without Fast Open: medians over the "
    "seeds proven both ways."
)
TIME_MAPS = FigureKind(
    "time-maps",
    partial(_map_title, "Page load time"),
    "Medians of proven loads in seconds, without Fast Open where both were measured. "
    "An empty field has no proven load.",
    partial(plan_maps, shown=Quantity(PLT_S, _median_s)),
)
SAVED_MAPS = FigureKind(
    "saved-maps",
    partial(_map_title, "What Fast Open saves"),
    f"{_SAVINGS} An empty field has no such seed.",
    partial(plan_maps, shown=Quantity(SAVED, _saved_pct, diverging=True)),
)
TIME_LINES = FigureKind("time-lines", partial(_line_title, "Page load time"),
                        "Medians of proven loads, and their range where they differ.",
                        partial(plan_lines,
                                shown=Quantity(PLT_MS, partial(_metric, metric=PLT))))  # fmt: skip
SAVED_LINES = FigureKind("saved-lines", partial(_line_title, "What Fast Open saves"), _SAVINGS,
                         partial(plan_lines, shown=Quantity(SAVED, _saved_pct)))  # fmt: skip
PAINT_LINES = FigureKind(
    "paint-lines",
    partial(_line_title, "First paint"),
    "Medians of proven loads, and their range where they differ; the browser rounds to "
    f"{PAINT_GRAIN_MS:g} ms.",
    partial(plan_lines, shown=Quantity(FIRST_PAINT.name, partial(_metric, metric=FIRST_PAINT))),
)
CALL_LINES = FigureKind(
    "call-lines",
    partial(_line_title, "Delay of a call beside the page"),
    "What 95 % of its packets did not exceed while the page was loading, one way and in the worse "
    "direction: medians of proven loads, and their range where they differ.",
    partial(plan_lines, shown=Quantity("Delay of 95 % (ms)", _call_ms)),
)
FIGURES = (SAVED_MAPS, TIME_MAPS, TIME_LINES, SAVED_LINES, PAINT_LINES, CALL_LINES, BARS, PATHS,
           INTERVALS, LOADS, REQUESTS, WAITS)  # fmt: skip
