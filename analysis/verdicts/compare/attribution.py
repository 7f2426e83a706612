"""Attribution of a difference between two virtual kernels: what it is, cell by cell.

On the virtual kernel nothing is left to chance, but not every difference says something about TCP.
Each clock read costs a tick of virtual time, so that a kernel which reads the clock once more moves
packets by some ticks and changes nothing else.  A browser's threads may then run in another order,
and ask for other things first: its load times move with any change, harmless ones included.  A
client that asks in an order which only the network decides shows TCP alone.  Where a seed draws
something, such as lost packets, one load says little: there seeds are compared, and what all cells
of a client come to together (`analysis.verdicts.compare.family`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from analysis.records.cells import Axes, Cell
from analysis.records.kernel_warnings import KernelWarning
from analysis.records.kind import records_of
from analysis.records.metric import Metric
from analysis.stats.estimates import Estimate
from analysis.stats.shift import estimate_paired_shift
from analysis.verdicts.compare.captures import Pair
from analysis.words import clean, count
from testbed.capture.difference import read_shifts
from testbed.model import CAPTURE_FILE, Record

Attributed = Literal["broken", "slower", "faster", "other packets", "spread", "inconclusive",
                     "phase only", "no effect"]  # fmt: skip
"""What a cell came to on another kernel (wings/kernels/README.md)."""

CLOCK_READ_NS = 256
"""What reading the clock costs in virtual time."""
PHASE_NS = 100_000
"""A packet, or a load, that moves by so much did not move by clock reads alone."""
OLDER_TCP_ALONE = ("graph", "wget2")
"""The clients that were TCP alone before results said so themselves."""
HARMLESS_PCT = 2.7
"""By so much a change that does nothing moved a cell of Chromium: one more read of the clock for
each sendmsg moved 9 of the 24 cells of Table 1, this one the most (wings/kernels/README.md)."""
HARMLESS_DRAWN_PCT = 0.1
"""What is less over several seeds of lost packets is nobody's, though its interval leaves out 0."""
THREADED = "wget2"
HARMLESS_THREADS_PCT = 0.9
"""By up to 0.84 % the same change moved 6 of 16 cells of wget2, each by a packet with which it asks
for something else, until which packets had moved by clock reads alone."""
LEAST_SEEDS = 5
"""With fewer, load times that are drawn or a browser's say nothing: of 5 the interval is one of
94 %."""

SAME = "the same packets at other times"
OTHER = "other packets"
ASKED = "other packets, the first of them another request of the client,"
UNREAD = "other captures, which cannot be read,"
"""What captures show, in words."""

ReadPair = Callable[[Record, Record], Pair | None]
"""From the records of one trial to its captures, if both can be read."""


@dataclass(frozen=True, slots=True)
class CounterChange:
    """A TCP counter that grew otherwise during the same trial."""

    end: Literal["client", "server"]
    """Whose kernel counted."""
    name: str
    """The counter, as nstat(8) names it."""
    base: int
    """By how much it grew in the base."""
    new: int
    """By how much it grew in the new results."""


@dataclass(frozen=True, slots=True)
class CellAttribution:
    """What one cell came to on the new kernel, and by what."""

    verdict: Attributed
    """What it came to."""
    reason: str
    """Why, in a sentence."""
    seeds: int
    """How many trials both have."""
    pct: Estimate | None
    """How much the metric grew in percent of the base's (Hodges and Lehmann's estimate over
    seeds); null without a trial in both."""
    shift_ns: tuple[int, int] | None = None
    """Where it is by phase only, by how much packets come later, at the least and at the most."""
    other_packets: bool | None = False
    """Whether other packets come in a trial, or the same in another order or with other contents;
    null where it cannot be told."""
    counters: tuple[CounterChange, ...] = ()
    """The counters that grew otherwise in the first trial that differs, those with the largest
    change first."""
    drawn: bool = False
    """Whether a seed draws what its loads depend on, such as lost packets; without, one load is
    exact."""
    tcp_alone: bool = True
    """Whether its client asks as the network lets it, so that any difference is TCP's."""
    kernel_warnings: tuple[KernelWarning, ...] = ()
    """What the new kernel complained of on its console and the base did not."""
    base_kernel_warnings: tuple[KernelWarning, ...] = ()
    """What the base complained of itself, which is not the new kernel's doing."""

    @property
    def words(self) -> str:
        """The verdict with its size where it has one: ``slower 3.21 %``."""
        if self.pct is not None and self.verdict in ("slower", "faster"):
            return f"{self.verdict} {abs(self.pct.value):.2f} %"
        if self.pct is not None and self.verdict == "spread":
            return f"spread {self.pct.value:+.2f} %"
        return self.verdict


def tcp_alone(manifest: Mapping[str, Any]) -> frozenset[str]:
    """Return the clients of results that show TCP alone: their requests follow from the network."""
    said = manifest.get("tcp_alone")
    return frozenset(OLDER_TCP_ALONE if said is None else map(str, said))


def attribute_cell(
    cells: tuple[Cell, Cell], read: ReadPair, alone: Collection[str]
) -> CellAttribution:
    """Return what the new one of two cells of one condition came to.

    ``read`` gives the captures of a trial; it is asked only where the digests differ, and until a
    trial with other packets is found.  ``alone`` are the clients that show TCP alone.
    """
    attribution = _attribute(cells, read, alone)
    return replace(attribution, drawn=_is_drawn(cells[0]),
                   tcp_alone=_shows_tcp(cells[0], alone))  # fmt: skip


def _attribute(cells: tuple[Cell, Cell], read: ReadPair, alone: Collection[str]) -> CellAttribution:
    before, after = (cell.by_seed for cell in cells)
    ours, theirs = (cell.records_by_seed for cell in cells)
    shared = [block for block in before if block in after]
    percents = [(after[b] - before[b]) / before[b] * 100.0 for b in shared if before[b] > 0]
    pct = estimate_paired_shift(percents) if percents else None
    lost = [block for block in before if block in theirs and block not in after]
    if lost:
        reason = f"seed {lost[0][0]} is proven in BASE and not in NEW: {_ended(theirs[lost[0]])}"
        return CellAttribution("broken", reason, len(shared), pct, None, None)
    if not shared:
        side = "NEW" if before else "BASE"
        reason = f"{side} has no number of this cell"
        return CellAttribution("inconclusive", reason, 0, None, None, None)
    pairs = [(ours[block], theirs[block]) for block in shared]
    moved = [after[b] - before[b] for b in shared]
    attribution = _judge(cells[0], pairs, moved, pct, read, alone)
    if attribution.verdict in ("no effect", "phase only") and len(shared) < len(before):
        reason = f"so far {attribution.verdict}, in {len(shared)} of {count(len(before), 'trial')}"
        return CellAttribution("inconclusive", reason, len(shared), pct, None, None)
    return attribution


def blame(
    attribution: CellAttribution, base: Sequence[KernelWarning], new: Sequence[KernelWarning]
) -> CellAttribution:
    """Return ``attribution`` with what both kernels complained of; what only NEW did breaks it."""
    own = tuple(warning for warning in new if not any(warning.is_like(each) for each in base))
    if own:
        often = f"{own[0].title}, in {count(own[0].trials, 'trial')} of NEW"
        lost = attribution.verdict == "broken"
        attribution = replace(
            attribution, verdict="broken",
            reason=f"{often}; {attribution.reason}" if lost else f"{often} and none of BASE",
        )  # fmt: skip
    return replace(attribution, kernel_warnings=own, base_kernel_warnings=tuple(base))


def _ended(record: Record) -> str:
    """Return how a trial ended that is not proven, in a few words."""
    first = clean((record.reason or "").partition("\n")[0])
    if record.outcome == "timeout" and record.lab is None:
        return f"the kernel hangs: {first}"
    return f"{record.outcome}, {first}" if first else record.outcome


def _judge(
    cell: Cell, pairs: Sequence[tuple[Record, Record]], moved: Sequence[float],
    pct: Estimate | None, read: ReadPair, alone: Collection[str],
) -> CellAttribution:  # fmt: skip
    """Judge the trials that both have; their metric ``moved`` by so much."""
    n, metric = len(pairs), cell.metric
    differing = [
        pair
        for pair, more in zip(pairs, moved, strict=True)
        if more != 0 or not _same_capture(*pair)
    ]
    if not differing:
        reason = f"captures and {metric.words} are equal to the bit"
        return CellAttribution("no effect", reason, n, pct)
    what, shifts = _look(differing, read)
    still = not any(_has_moved(more, metric) for more in moved)
    if what == SAME and still and all(map(_is_phase, shifts)):
        low, high = min(shifts, default=0), max(shifts, default=0)
        ticks = f"{low // CLOCK_READ_NS} to {high // CLOCK_READ_NS}"
        reason = f"the same packets, later by {ticks} clock reads of {CLOCK_READ_NS} ns"
        return CellAttribution("phase only", reason, n, pct, (low, high))
    if what == UNREAD and still:
        reason = f"the captures differ and cannot be read, the {metric.words} hardly do"
        return CellAttribution("inconclusive", reason, n, pct, None, None)
    counters = counters_that_part(*differing[0])
    other = None if what == UNREAD else what != SAME
    shows_tcp = _shows_tcp(cell, alone)
    if not shows_tcp or (_is_drawn(cell) and not still):
        verdict, reason = _weigh_spread(n, pct, metric, harmless_pct(cell.axes, shows_tcp))
        return CellAttribution(verdict, reason, n, pct, None, other, counters)
    verdict = _direction(estimate_paired_shift(moved).value, metric)
    reason = f"{what} in {len(differing)} of {count(n, 'trial')}"
    threads = what == ASKED and cell.axes.get("client") == THREADED and verdict != "other packets"
    if threads and pct is not None and abs(pct.value) <= HARMLESS_THREADS_PCT:
        verdict = "spread"
        reason += f": as the order of its threads gives, up to {HARMLESS_THREADS_PCT:g} %"
    return CellAttribution(verdict, reason, n, pct, None, other, counters)


def _look(
    differing: Sequence[tuple[Record, Record]], read: ReadPair
) -> tuple[str, tuple[int, ...]]:
    """Return what the captures of trials that differ show, and by how much all packets moved.

    The client asks otherwise only if nothing but clock reads moved a packet before.
    """
    shifts: list[int] = []
    asks_otherwise = False
    for base, new in differing:
        if _same_capture(base, new):
            continue
        captures = read(base, new)
        if captures is None:
            return UNREAD, ()
        found = read_shifts(*captures)
        if found.whole:
            shifts += found.later_ns
        elif found.asked and all(map(_is_phase, found.later_ns)):
            asks_otherwise = True
        else:
            return OTHER, ()
    return (ASKED, ()) if asks_otherwise else (SAME, tuple(shifts))


def counters_that_part(base: Record, new: Record) -> tuple[CounterChange, ...]:
    """Return the TCP counters of both ends that grew otherwise, those that changed most first.

    They are totals of a load: none says when it grew.
    """
    return tuple(sorted(_counters(base, new), key=lambda change: -abs(change.new - change.base)))


def _counters(base: Record, new: Record) -> Iterator[CounterChange]:
    if base.proof is None or new.proof is None:
        return
    ends: tuple[tuple[Literal["client", "server"], Mapping[str, int], Mapping[str, int]], ...] = (
        ("client", base.proof.client_counters, new.proof.client_counters),
        ("server", base.proof.server_counters, new.proof.server_counters),
    )
    for end, ours, theirs in ends:
        for name in ours.keys() | theirs.keys():
            base_count, new_count = ours.get(name, 0), theirs.get(name, 0)
            if base_count != new_count:
                yield CounterChange(end, name, base_count, new_count)


def _same_capture(base: Record, new: Record) -> bool:
    digest = base.artefacts.get(CAPTURE_FILE)
    return digest is not None and digest == new.artefacts.get(CAPTURE_FILE)


def _is_phase(shift_ns: int) -> bool:
    """Return whether a packet may have moved by clock reads alone."""
    return shift_ns % CLOCK_READ_NS == 0 and abs(shift_ns) < PHASE_NS


def _has_moved(by: float, metric: Metric) -> bool:
    """Return whether a load took longer or shorter, by more than clock reads."""
    return abs(by) * 1e6 >= PHASE_NS if metric.is_time else abs(by) > metric.grain


def _shows_tcp(cell: Cell, alone: Collection[str]) -> bool:
    """Return whether any difference of a cell is TCP's: its client asks as the network lets it."""
    return records_of(cell.kind).tcp_alone or cell.axes.get("client") in alone


def _is_drawn(cell: Cell) -> bool:
    """Return whether a seed draws what the loads of a cell depend on."""
    return any(record.trial.condition.draws for record in cell.records[:1])


def harmless_pct(axes: Axes, shows_tcp: bool) -> float:
    """Return by how many percent what does nothing moves load times over seeds, at the most."""
    if not shows_tcp:
        return HARMLESS_PCT
    return HARMLESS_THREADS_PCT if axes.get("client") == THREADED else HARMLESS_DRAWN_PCT


def _direction(moved: float, metric: Metric) -> Attributed:
    if not _has_moved(moved, metric):
        return "other packets"
    return "slower" if (moved > 0) != metric.more else "faster"


def _weigh_spread(
    n: int, pct: Estimate | None, metric: Metric, bound_pct: float
) -> tuple[Attributed, str]:
    if pct is None or n < LEAST_SEEDS:
        return "inconclusive", (
            f"other packets, which a harmless change gives as well; {count(n, 'seed')}, "
            f"{LEAST_SEEDS} are needed to tell (-n {LEAST_SEEDS})"
        )
    zero = pct.interval is None or pct.interval.holds(0.0)
    if zero or abs(pct.value) <= bound_pct:
        why = "with an interval that holds 0" if zero else f"within {bound_pct:g} %"
        return "spread", f"over {n} seeds {pct.value:+.2f} %, {why}: as harmless changes give"
    verdict: Attributed = "slower" if (pct.value > 0) != metric.more else "faster"
    return verdict, f"over {n} seeds by more than harmless changes give ({bound_pct:g} %)"
