"""Table of cells by kernels: each later kernel's results attributed against those of the first."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from analysis.records.cells import Axes, key_of
from analysis.records.kernel_warnings import KernelWarning, merge_warnings
from analysis.records.metric import PLT, Metric
from analysis.verdicts.compare.attribution import Attributed, CellAttribution
from analysis.verdicts.compare.comparison import (
    VIRTUAL,
    CellFinding,
    CompareOptions,
    Comparison,
)
from analysis.verdicts.compare.family import Family, families_of
from analysis.verdicts.compare.folders import compare_results
from analysis.words import clean
from testbed.base.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    ConfigurationError,
)
from testbed.experiment.lanes import read_lanes

FailOn = Literal["slower", "any", "none"]
"""What fails: a slower cell, any cell with another packet, or nothing."""
_MOVED: tuple[Attributed, ...] = ("slower", "faster")


def came_to(cell: CellFinding) -> CellAttribution:
    """Return what a cell came to on a later kernel; ``attribution_of`` refuses others."""
    assert cell.attribution is not None  # noqa: S101
    return cell.attribution


@dataclass(frozen=True, slots=True)
class FailRule:
    """What counts as a failure.

    ``least_pct`` is by how many percent a cell must be slower to fail; with 0 by anything more
    than clock reads.  A cell that was proven in the base and is not on the new kernel fails,
    unless nothing does.
    """

    on: FailOn = "slower"
    least_pct: float = 0.0

    def flags(self, cell: CellFinding) -> bool:
        """Return whether ``cell`` fails."""
        attribution = came_to(cell)
        if self.on == "none":
            return False
        if attribution.verdict == "broken":
            return True
        if self.on == "any":
            return attribution.other_packets is True or attribution.verdict in _MOVED
        large = attribution.pct is None or abs(attribution.pct.value) >= self.least_pct
        return attribution.verdict == "slower" and large

    def flags_family(self, family: Family) -> bool:
        """Return whether drawn cells fail together, whatever becomes of each."""
        slower = family.verdict == "slower" and abs(family.pct.value) >= self.least_pct
        return slower and self.on != "none"


@dataclass(frozen=True, slots=True)
class LaneVerdicts:
    """A later kernel beside the first: its name, and the comparison of the two."""

    name: str
    comparison: Comparison

    @property
    def cells(self) -> tuple[CellFinding, ...]:
        """The cells, each of which was attributed."""
        return self.comparison.cells

    @property
    def families(self) -> tuple[Family, ...]:
        """What the cells of each client came to together whose loads a seed draws."""
        return families_of(self.cells, self.comparison.metric)

    @property
    def counts(self) -> dict[Attributed, int]:
        """How many cells came to what, the gravest first; without those that no cell came to."""
        verdicts = [came_to(cell).verdict for cell in self.cells]
        return {verdict: verdicts.count(verdict) for verdict in get_args(Attributed)
                if verdict in verdicts}  # fmt: skip

    @property
    def kernel_warnings(self) -> dict[KernelWarning, int]:
        """What this kernel complained of and the base did not: in how many cells each."""
        return _count_warnings(came_to(cell).kernel_warnings for cell in self.cells)

    @property
    def base_kernel_warnings(self) -> dict[KernelWarning, int]:
        """The same of the base."""
        return _count_warnings(came_to(cell).base_kernel_warnings for cell in self.cells)

    @property
    def changes_pct(self) -> tuple[float, ...]:
        """By how many percent the metric of each cell grew, where that is known."""
        changes = (came_to(cell).pct for cell in self.cells)
        return tuple(pct.value for pct in changes if pct is not None)

    @property
    def median_pct(self) -> float | None:
        """The median change of all cells."""
        return statistics.median(self.changes_pct) if self.changes_pct else None

    @property
    def extreme(self) -> CellFinding | None:
        """The cell that changed most; ``None`` where none has a number."""
        known = [cell for cell in self.cells if came_to(cell).pct]
        return max(known, key=size_of, default=None)


@dataclass(frozen=True, slots=True)
class Row:
    """A cell of the base, and what it came to on each later kernel; ``None`` where it is not."""

    axes: Axes
    base: float | None
    cells: tuple[CellFinding | None, ...]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The first kernel, and the later ones with their verdicts on each of its cells.

    ``names`` are the axes that tell the cells apart; ``base_name`` is the first kernel's.
    """

    base_name: str
    base: str
    lanes: tuple[LaneVerdicts, ...]
    rows: tuple[Row, ...]
    names: tuple[str, ...]
    metric: Metric

    def flagged(self, rule: FailRule) -> int:
        """Return how many cells fail, over all kernels."""
        return sum(rule.flags(cell) for lane in self.lanes for cell in lane.cells)

    def exit_code(self, rule: FailRule) -> int:
        """Return 1 if a cell fails, else 5 if one is inconclusive, else 0; 0 if nothing fails."""
        if rule.on == "none":
            return EXIT_OK
        together = (family for lane in self.lanes for family in lane.families)
        if self.flagged(rule) or any(map(rule.flags_family, together)):
            return EXIT_OUT_OF_TOLERANCE
        unclear = any("inconclusive" in lane.counts for lane in self.lanes)
        return EXIT_INCONCLUSIVE if unclear else EXIT_OK


def attribute(base: Path, *new: Path, metric: Metric = PLT) -> Attribution:
    """Return what became of each cell of ``base`` in each of ``new``.

    All are results folders of virtual kernels, which differ in nothing but the kernel.

    Raises:
        ConfigurationError: they are of other kernels or of scenarios, they differ in more than the
            kernel, or have no cell in common.
        StorageError: a folder cannot be read.
    """
    options = CompareOptions(("kernel",), min_effect_pct=0.0, metric=metric, attribute=True)
    return attribution_of([compare_results(base, folder, options) for folder in new])


def attribute_lanes(folder: Path, metric: Metric = PLT) -> Attribution:
    """Return what became of each cell of the first lane of a run in each of its other lanes.

    Raises:
        ConfigurationError: ``folder`` has no lanes, or as ``attribute``.
        StorageError: as ``attribute``.
    """
    names = read_lanes(folder)
    if len(names) < 2:
        raise ConfigurationError(
            [f"{folder} is no run on several kernels: name two results folders, BASE and NEW, or "
             "run with "
             "--set 'kernel.versions=[\"7.3\", \"6.1\"]'"]
        )  # fmt: skip
    first, *others = (folder / name for name in names)
    return attribute(first, *others, metric=metric)


def attribution_of(comparisons: Sequence[Comparison]) -> Attribution:
    """Return the table of comparisons with one base, in their order.

    Raises:
        ConfigurationError: one is not of two virtual kernels, or of scenarios.
    """
    problems = [
        f"{comparison.new} and {comparison.base} are no loads on virtual kernels: only of these a "
        "difference is surely the kernel's; use ./run.sh compare BASE NEW --across kernel, and for "
        "scenarios ./run.sh scenario all" for comparison in comparisons
        if comparison.kernel != VIRTUAL or comparison.clocks_differ
        or not all(cell.attribution for cell in comparison.cells)
    ]  # fmt: skip
    if problems or not comparisons:
        raise ConfigurationError(problems or ["there is nothing to compare the base with"])
    first = comparisons[0]
    lanes = tuple(map(LaneVerdicts, _names(comparisons), comparisons))
    lane_cells = [
        {key_of(cell.axes): cell for cell in comparison.cells} for comparison in comparisons
    ]
    axes = {key_of(cell.axes): cell.axes for comparison in comparisons for cell in comparison.cells}
    rows = tuple(_row(axes[key], [each.get(key) for each in lane_cells]) for key in axes)
    named = dict.fromkeys(name for comparison in comparisons for name in comparison.names)
    kernels = next(
        (comparison.kernels for comparison in comparisons if comparison.kernels is not None), None
    )
    base_name = kernels.base.kernel_version if kernels is not None else None
    return Attribution(clean(base_name or Path(first.base).name), first.base, lanes, rows,
                       tuple(named), first.metric)  # fmt: skip


def _count_warnings(cells: Iterable[Sequence[KernelWarning]]) -> dict[KernelWarning, int]:
    found = [warning for warnings in cells for warning in warnings]
    merged = merge_warnings(found)
    return dict(Counter(merged[warning] for warning in found))


def _row(axes: Axes, cells: Sequence[CellFinding | None]) -> Row:
    base = next((cell.base.median_ms for cell in cells if cell and cell.base), None)
    return Row(axes, base, tuple(cells))


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    """Name each new kernel by its version; where that does not tell it apart, by its folder."""
    versions = [comparison.kernels.new.kernel_version if comparison.kernels else None
                for comparison in comparisons]  # fmt: skip
    return [
        clean(version if version and versions.count(version) == 1 else Path(comparison.new).name)
        for version, comparison in zip(versions, comparisons, strict=True)
    ]


def size_of(cell: CellFinding) -> float:
    """Return by how many percent a cell is another, either way; 0 where that is not known."""
    pct = came_to(cell).pct
    return abs(pct.value) if pct is not None else 0.0
