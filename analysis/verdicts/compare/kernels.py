"""Evidence on two kernels under test: captures of the same loads, changes by client, and savings.

On the virtual kernel computing takes no time and the link is exact, so whatever differs between two
versions is the kernels' own doing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.records.cells import Axes, Cell, Key, key_of
from analysis.records.results import Identity
from analysis.stats.estimates import Estimate
from analysis.stats.shift import estimate_paired_shift
from analysis.tables.table import make_table
from analysis.verdicts.compare.captures import Pair
from testbed.capture.difference import PacketDifference, is_asked_otherwise
from testbed.capture.packets import Capture
from testbed.model import Record

Parting = Literal["acknowledgement", "request", "other", "none"]
"""By what two loads part first; other fields and other times do not part them."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One cell on two virtual kernels."""

    n: int
    """How many trials both have."""
    ms: Estimate
    """How much later loads end, or reach another metric, on the new kernel (Hodges and Lehmann's
    estimate), in the metric's unit."""
    pct: Estimate
    """The same in percent of the base's metric."""
    packets: tuple[int, int] | None
    """How many packets one trial has on both kernels, the base's first; null without captures."""
    retransmits: tuple[int, int]
    """How many segments that trial retransmitted, the base's first."""
    parting: Parting | None
    """What its packets part by first; null without captures."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What Fast Open saves in one condition on either kernel; what both arms cost cancels."""

    axes: Axes
    """The condition, by knob."""
    base: Estimate
    """The saving on the base's kernel, in the metric's unit."""
    new: Estimate
    """The saving on the new kernel, in the same."""

    @property
    def difference_ms(self) -> float:
        """The new kernel's saving minus the base's."""
        return self.new.value - self.base.value


@dataclass(frozen=True, slots=True)
class Kernels:
    """The two kernels under test, and what Fast Open saves on each."""

    base: Identity
    new: Identity
    savings: tuple[Saving, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """By how many percent the metric of some cells changed."""

    cells: int
    """How many cells."""
    median: float
    """The median change."""
    low: float
    """The least change."""
    high: float
    """The greatest change."""
    largest: int
    """The cell that changed most; its place among the cells."""
    partings: dict[Parting, int]
    """How many loads part by what first."""


def change_of(
    cells: tuple[Cell, Cell], records: tuple[Record, Record], captures: Pair | None,
    difference: PacketDifference | None,
) -> KernelChange | None:  # fmt: skip
    """Return the change of a cell from the base to the new kernel; ``None`` without any trial.

    ``records`` and ``captures`` are those of one trial, and ``difference`` the first packet in
    which they differ.
    """
    ours, theirs = (cell.by_seed for cell in cells)
    blocks = [block for block in ours.keys() & theirs.keys() if ours[block] > 0]
    if not blocks:
        return None
    later = {block: theirs[block] - ours[block] for block in blocks}
    base_resent, new_resent = (r.proof.retransmits if r.proof else 0 for r in records)
    return KernelChange(
        n=len(blocks),
        ms=estimate_paired_shift(later.values()),
        pct=estimate_paired_shift(later[block] / ours[block] * 100.0 for block in blocks),
        packets=(len(captures[0].packets), len(captures[1].packets)) if captures else None,
        retransmits=(base_resent, new_resent),
        parting=_parting(*captures, difference) if captures else None,
    )


def overview_of(changes: Mapping[int, KernelChange]) -> Overview | None:
    """Return how much ``changes``, by the places of their cells, are; ``None`` of none."""
    if not changes:
        return None
    values = [change.pct.value for change in changes.values()]
    partings = [change.parting for change in changes.values() if change.parting is not None]
    return Overview(
        cells=len(values), median=statistics.median(values), low=min(values), high=max(values),
        largest=max(changes, key=lambda place: abs(changes[place].pct.value)),
        partings={parting: partings.count(parting) for parting in dict.fromkeys(partings)},
    )  # fmt: skip


def savings_of(
    base: Iterable[Cell], new: Iterable[Cell], without: Sequence[str] = ()
) -> tuple[Saving, ...]:
    """Return what Fast Open saves in all conditions that have both arms on both kernels.

    Conditions are matched by all knobs but ``without``.
    """
    ours, theirs = _saved(base, without), _saved(new, without)
    return tuple(Saving(*ours[key], theirs[key][1]) for key in ours if key in theirs)


def _saved(cells: Iterable[Cell], without: Sequence[str]) -> Mapping[Key, tuple[Axes, Estimate]]:
    return {
        key_of(pair.axes, without): (pair.axes, pair.shift.ms)
        for pair in make_table(list(cells), None).pairs
        if pair.shift is not None
    }


def _parting(base: Capture, new: Capture, difference: PacketDifference | None) -> Parting:
    order = difference.order if difference is not None else None
    if is_asked_otherwise(base, new, difference):
        return "request"
    if order is None:
        return "none"
    packets = [packet for packet in (order.base, order.new) if packet is not None]
    bare = any(packet.flags == "." and not packet.length for packet in packets)
    return "acknowledgement" if bare else "other"
