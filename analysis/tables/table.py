"""The results table: off/on pairs where Fast Open was swept throughout, else a row per condition.

The shape is that of Table 1 of the TCP Fast Open paper (CoNEXT 2011): load time without and
with the mechanism, and the improvement in percent of the time without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from analysis.records.cells import (
    Axes,
    Cell,
    Key,
    Spread,
    further_metrics,
    key_of,
    spread_of,
    unusual_axes,
    varying_axes,
)
from analysis.records.kind import records_of
from analysis.records.metric import PLT, Metric
from analysis.records.replay_coverage import ReplayCoverage
from analysis.stats.estimates import SampleStatistics
from analysis.stats.shift import Shift, shift_between, without_interval
from analysis.words import name_axes
from testbed.model import DEFAULT_KIND

PAIR_AXIS = "tfo"


@dataclass(frozen=True, slots=True)
class Published:
    """One published row: load times in seconds, improvement in percent, and its place.

    ``deviation_pct`` bounds the standard deviation of its load times, in percent of the average.
    """

    plt_off_s: float
    plt_on_s: float
    improvement_pct: float
    source: str
    deviation_pct: float | None = None


class PublishedRows(Protocol):
    """Rows that were published, to stand beside ours."""

    def find(self, axes: Mapping[str, Any]) -> Published | None:
        """Return the published row for these axes; ``None`` where nothing was published."""


@dataclass(frozen=True)  # no slots, as a Cell: what is asked for often is worked out once
class Pair:
    """The same condition without and with Fast Open; an arm may be missing."""

    axes: Axes
    off: Cell | None
    on: Cell | None
    paper: Published | None

    @property
    def arms(self) -> tuple[tuple[str, Cell | None], ...]:
        """Both arms by the name that messages use."""
        return ("off", self.off), ("on", self.on)

    @cached_property
    def seeds(self) -> frozenset[tuple[int, int]]:
        """The (seed, repetition) that have a number in both arms: only these are compared."""
        off = self.off.by_seed if self.off else {}
        on = self.on.by_seed if self.on else {}
        return frozenset(off.keys() & on.keys())

    @cached_property
    def spread_off(self) -> Spread | None:
        """Spread of the metric without Fast Open, over the common seeds if there are any."""
        return self._arm(self.off)

    @cached_property
    def spread_on(self) -> Spread | None:
        """Spread of the metric with Fast Open, over the common seeds if there are any."""
        return self._arm(self.on)

    @cached_property
    def improvement_pct(self) -> Spread | None:
        """Each common seed's own improvement in percent of the time without Fast Open."""
        return spread_of(self.gain_by_seed.values())

    @cached_property
    def gain_by_seed(self) -> dict[tuple[int, int], float]:
        """Improvement in percent of the time without Fast Open, by (seed, repetition)."""
        if self.off is None or self.on is None:
            return {}
        off, on = self.off.by_seed, self.on.by_seed
        return {
            seed: (off[seed] - on[seed]) / off[seed] * 100.0
            for seed in sorted(self.seeds)
            if off[seed] > 0
        }

    @cached_property
    def shift(self) -> Shift | None:
        """How much sooner the metric comes with Fast Open, over the common seeds."""
        if self.off is None or self.on is None:
            return None
        shift = shift_between(self.off.by_seed, self.on.by_seed)
        return shift if shift is None or self.varies else without_interval(shift)

    @property
    def varies(self) -> bool:
        """Whether seeds made a difference in an arm, or may have."""
        return any(cell is None or cell.varies is not False for _, cell in self.arms)

    @cached_property
    def samples(self) -> tuple[SampleStatistics | None, SampleStatistics | None]:
        """Statistics of the metric without and with Fast Open, over the common seeds."""
        return self._sample(self.off), self._sample(self.on)

    def by(self, metric: Metric) -> Pair:
        """Return the same pair with the numbers of another metric, of which none is published."""
        off, on = (cell.by(metric) if cell else None for _, cell in self.arms)
        return Pair(self.axes, off, on, self.paper if metric == PLT else None)

    @property
    def coverage(self) -> ReplayCoverage:
        """How the server answered in both arms."""
        return sum((cell.coverage for _, cell in self.arms if cell), ReplayCoverage())

    @property
    def status(self) -> str:
        """``proven`` when both arms are; else what happened, arm by arm."""
        words = [(name, cell.status if cell else "not planned") for name, cell in self.arms]
        wrong = [f"{name}: {word}" for name, word in words if word != "proven"]
        return "; ".join(wrong) or "proven"

    @property
    def problems(self) -> tuple[str, ...]:
        """What lab and wire held against either arm."""
        return tuple(
            f"{name}: {problem}" for name, cell in self.arms if cell for problem in cell.problems
        )

    def _sample(self, cell: Cell | None) -> SampleStatistics | None:
        if cell is None or not self.seeds:
            return cell.sample if cell else None
        return cell.describe(map(cell.by_seed.__getitem__, self.seeds))

    def _arm(self, cell: Cell | None) -> Spread | None:
        if cell is None or not self.seeds:
            return cell.spread if cell else None
        return spread_of(map(cell.by_seed.__getitem__, self.seeds))


@dataclass(frozen=True, slots=True)
class ResultTable:
    """All rows of an experiment: pairs where Fast Open was swept throughout, else cells."""

    cells: tuple[Cell, ...]
    pairs: tuple[Pair, ...]
    axes: tuple[str, ...]

    @property
    def metric(self) -> Metric:
        """What the numbers are of."""
        return self.cells[0].metric if self.cells else PLT

    @property
    def kind(self) -> str:
        """What the trials do."""
        return kind_of_cells(self.cells)

    @property
    def further(self) -> tuple[Metric, ...]:
        """The other metrics that a table of its kind shows beside the metric: those it has."""
        shown = records_of(self.kind).side_by_side
        seen = further_metrics(self.cells, self.metric)
        return seen if shown is None else tuple(metric for metric in seen if metric in shown)

    @property
    def paired(self) -> bool:
        """Whether the rows are off/on pairs."""
        return bool(self.pairs)

    @property
    def repeated(self) -> bool:
        """Whether seeds made a difference in any condition, so that there are intervals."""
        return any(cell.varies for cell in self.cells)

    def name_row(self, axes: Axes) -> str:
        """Return the name of the row of ``axes``, as ``amazon, 20 ms, initial window 10``."""
        return name_axes(axes, self.axes, bare=self.axes[:2])

    @property
    def coverage(self) -> ReplayCoverage:
        """How the server answered, over all cells."""
        return sum((cell.coverage for cell in self.cells), ReplayCoverage())


def kind_of_cells(cells: Sequence[Cell]) -> str:
    """Return the kind of the trials of ``cells``, which are of one kind."""
    return cells[0].kind if cells else DEFAULT_KIND


def make_table(cells: Sequence[Cell], reference: PublishedRows | None) -> ResultTable:
    """Arrange ``cells`` as rows.

    The axes are those that their kind always shows, whatever else varies, and what the kind shows
    unless it is at its default.  Where most conditions have one arm only, Fast Open is an axis like
    others.
    """
    kind = records_of(kind_of_cells(cells))
    varying = varying_axes(cells)
    unusual = unusual_axes(cells, kind.unless_default)
    pairs = _pairs(cells, reference) if kind.paired and PAIR_AXIS in varying else ()
    whole = sum(pair.off is not None and pair.on is not None for pair in pairs)
    paired = bool(pairs) and 2 * whole >= len(pairs)
    axes = (
        *kind.axes,
        *(n for n in varying if n not in kind.axes and not (paired and n == PAIR_AXIS)),
        *(n for n in unusual if n not in varying),
    )
    return ResultTable(tuple(cells), pairs if paired else (), axes)


def _pairs(cells: Sequence[Cell], reference: PublishedRows | None) -> tuple[Pair, ...]:
    arms: dict[Key, dict[bool, Cell]] = {}
    for cell in cells:
        key = key_of(cell.axes, without=(PAIR_AXIS,))
        arms.setdefault(key, {})[bool(cell.axes[PAIR_AXIS])] = cell
    pairs = []
    for pair in arms.values():
        axes = {n: v for n, v in next(iter(pair.values())).axes.items() if n != PAIR_AXIS}
        published = reference.find(axes) if reference else None
        pairs.append(Pair(axes, pair.get(False), pair.get(True), published))
    return tuple(pairs)
