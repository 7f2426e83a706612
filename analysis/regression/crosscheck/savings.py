"""What Fast Open saves on each of two kernels: what both arms cost alike is in neither number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.records.cells import Axes, Cell, Key, key_of
from analysis.stats.estimates import Estimate
from analysis.stats.shift import shift_between
from analysis.tables.table import PAIR_AXIS


@dataclass(frozen=True, slots=True)
class Saving:
    """Ms that Fast Open saves in one condition, on the base kernel and on the other."""

    axes: Axes
    base: Estimate
    other: Estimate

    @property
    def difference_ms(self) -> float:
        """The other kernel's saving minus the base's."""
        return self.other.value - self.base.value


def savings_of(cells: Iterable[tuple[Cell, Cell]]) -> tuple[Saving, ...]:
    """Return the savings of all conditions that have both arms on both kernels.

    Each pair is one cell on the base kernel and on the other.
    """
    pairs = list(cells)
    ours, theirs = _shifts(base for base, _ in pairs), _shifts(other for _, other in pairs)
    return tuple(
        Saving(ours[key][0], ours[key][1], theirs[key][1]) for key in ours if key in theirs
    )


def _shifts(cells: Iterable[Cell]) -> dict[Key, tuple[Axes, Estimate]]:
    arms: dict[Key, dict[bool, Cell]] = {}
    for cell in cells:
        arms.setdefault(key_of(cell.axes, without=(PAIR_AXIS,)), {})[cell.axes[PAIR_AXIS]] = cell
    shifts = {}
    for key, pair in arms.items():
        if len(pair) < 2:
            continue
        shift = shift_between(pair[False].plt_by_seed, pair[True].plt_by_seed)
        if shift is not None:
            axes = {name: value for name, value in pair[False].axes.items() if name != PAIR_AXIS}
            shifts[key] = (axes, shift.ms)
    return shifts
