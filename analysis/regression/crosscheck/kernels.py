"""Two virtual kernels side by side: what changed in each cell, and in which packet it shows first.

Computing takes no time there and the link is exact, so whatever differs is the kernels' own doing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from analysis.records.cells import Axes, Cell
from analysis.records.results import Identity, Results
from analysis.regression.compare.captures import find_capture
from analysis.regression.crosscheck.pairs import Pairing
from analysis.regression.crosscheck.savings import Saving, savings_of
from analysis.stats.estimates import Estimate
from analysis.stats.shift import estimate_shift
from testbed.model import Record
from testbed.wire.difference import PacketDifference, first_difference, is_asked_otherwise
from testbed.wire.packets import read_capture

CHANGE_PCT = 0.5
"""A cell whose load time differs by more has changed."""

Direction = Literal["sooner", "later", "close", "equal", "no number"]
Parting = Literal["acknowledgement", "request", "other", "none"]
Block = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wire:
    """The captures of one pair of loads; counts are of the base kernel and of the other.

    Without ``difference`` the packets are the same at the same times, unless ``problem`` says why
    they could not be compared; then there may be no counts of packets.  ``asked_otherwise`` says
    that the client asked for something else no later than where the order of packets differs.
    """

    packets: tuple[int, int] | None
    retransmits: tuple[int, int]
    difference: PacketDifference | None = None
    asked_otherwise: bool = False
    problem: str | None = None

    @property
    def parting(self) -> Parting:
        """By what the two loads part first: what the client asks, or what TCP makes of it.

        Other fields and other times do not part them.
        """
        if self.asked_otherwise:
            return "request"
        spot = self.difference.order if self.difference is not None else None
        if spot is None:
            return "none"
        found = [packet for packet in (spot.base, spot.new) if packet is not None]
        bare = any(packet.flags == "." and not packet.length for packet in found)
        return "acknowledgement" if bare else "other"


@dataclass(frozen=True, slots=True)
class Change:
    """One cell on both kernels: load times in ms, and the other's minus the base's.

    Load times are medians over the blocks that both have; ``ms`` and ``percent`` (of the base's
    time) are Hodges and Lehmann's estimate over these.  ``equal`` says that every load took the
    same time to the bit.  ``wire`` is that of the first block.
    """

    axes: Axes
    n: int
    base_ms: float | None
    other_ms: float | None
    ms: Estimate | None
    percent: Estimate | None
    equal: bool
    status: tuple[str, str]
    wire: Wire | None

    @property
    def direction(self) -> Direction:
        """Whether the page loads sooner or later on the other kernel, by more than a trace."""
        if self.percent is None:
            return "no number"
        if self.equal:
            return "equal"
        if abs(self.percent.value) <= CHANGE_PCT:
            return "close"
        return "later" if self.percent.value > 0 else "sooner"


@dataclass(frozen=True, slots=True)
class Overview:
    """Percent by which the load times of some cells changed: median, least and greatest.

    ``largest`` is the cell that changed most; ``partings`` counts where the loads part.
    """

    cells: int
    median: float
    low: float
    high: float
    largest: Change
    partings: dict[Parting, int]


@dataclass(frozen=True, slots=True)
class KernelCross:
    """All common cells of two virtual kernels; ``axes`` are those on which the cells differ."""

    base: Identity
    other: Identity
    changes: tuple[Change, ...]
    savings: tuple[Saving, ...]
    axes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[Direction, int]:
        """How many cells went which way."""
        found = [change.direction for change in self.changes]
        return {direction: found.count(direction) for direction in dict.fromkeys(found)}

    @property
    def overviews(self) -> dict[str, Overview]:
        """The changes by client, as far as there are numbers.

        One client may leave the network alone and another order its requests by its threads.
        """
        cells: dict[str, list[Change]] = {}
        for change in self.changes:
            cells.setdefault(str(change.axes.get("client")), []).append(change)
        found = {client: overview(changes) for client, changes in cells.items()}
        return {client: one for client, one in found.items() if one is not None}


def cross_kernels(pairing: Pairing) -> KernelCross:
    """Compare the cells of ``pairing``, whose kernels both ran in virtual time."""
    return KernelCross(
        pairing.base.identity,
        pairing.other.identity,
        tuple(_change(pairing, base, other) for base, other in pairing.cells),
        savings_of(pairing.cells),
        pairing.axes,
        pairing.notes,
    )


def overview(changes: Iterable[Change]) -> Overview | None:
    """Return how much ``changes`` are; ``None`` where none has a number."""
    pairs = [(change, change.percent.value) for change in changes if change.percent is not None]
    if not pairs:
        return None
    values = [value for _, value in pairs]
    partings = [change.wire.parting for change, _ in pairs if change.wire is not None]
    return Overview(
        cells=len(values),
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        largest=max(pairs, key=lambda pair: abs(pair[1]))[0],
        partings={parting: partings.count(parting) for parting in dict.fromkeys(partings)},
    )


def _change(pairing: Pairing, base: Cell, other: Cell) -> Change:
    ours, theirs = base.plt_by_seed, other.plt_by_seed
    blocks = sorted(block for block in ours.keys() & theirs.keys() if ours[block] > 0)
    status = (base.status, other.status)
    if not blocks:
        return Change(base.axes, 0, _median(ours), _median(theirs), None, None, False, status, None)
    later = {block: theirs[block] - ours[block] for block in blocks}
    first = _record(base, blocks[0]), _record(other, blocks[0])
    return Change(
        axes=base.axes,
        n=len(blocks),
        base_ms=statistics.median(ours[block] for block in blocks),
        other_ms=statistics.median(theirs[block] for block in blocks),
        ms=estimate_shift(later.values()),
        percent=estimate_shift(later[block] / ours[block] * 100.0 for block in blocks),
        equal=not any(later.values()),
        status=status,
        wire=compare_wire(pairing.base, first[0], pairing.other, first[1]),
    )


def compare_wire(base: Results, one: Record, other: Results, two: Record) -> Wire:
    """Compare the captures of two loads: ``one`` of ``base``, ``two`` of ``other``."""
    sent = tuple(record.proof.retransmits if record.proof else 0 for record in (one, two))
    retransmits = (sent[0], sent[1])
    ours, our_problem = find_capture(base.folder, one)
    theirs, their_problem = find_capture(other.folder, two)
    if ours is None or theirs is None:
        problem = "; ".join(part for part in (our_problem, their_problem) if part)
        return Wire(None, retransmits, problem=problem)
    try:
        base_capture, other_capture = read_capture(ours), read_capture(theirs)
    except (OSError, ValueError) as error:
        return Wire(None, retransmits, problem=f"the captures cannot be compared: {error}")
    packets = (len(base_capture.packets), len(other_capture.packets))
    difference = first_difference(base_capture, other_capture)
    asked_otherwise = is_asked_otherwise(base_capture, other_capture, difference)
    return Wire(packets, retransmits, difference, asked_otherwise)


def _record(cell: Cell, block: Block) -> Record:
    return next(r for r in cell.proven if (r.trial.seed, r.trial.repetition) == block)


def _median(times: Mapping[Block, float]) -> float | None:
    return statistics.median(times.values()) if times else None
