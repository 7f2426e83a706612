"""Answer to what a kernel does to load times, in a sentence: how much, how sure, in which cells.

Cells that show TCP alone answer first.  Of a client with threads any change moves load times, one
that does nothing included, so that its cells come in a sentence of their own.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.stats.estimates import Estimate
from analysis.stats.shift import estimate_paired_shift
from analysis.verdicts.compare.attribution import LEAST_SEEDS, Attributed
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.compare.family import Family, changes_pct
from analysis.words import clean, count
from wings.kernels.verdicts.table import LaneVerdicts, came_to

_MOVED: tuple[Attributed, ...] = ("slower", "faster")
_OTHER: tuple[Attributed, ...] = ("other packets", "spread")


def answer(lane: LaneVerdicts) -> str:
    """Return what the cells of ``lane`` that show TCP alone came to; without any, all of them."""
    if lane.kernel_warnings:
        warnings = (
            f"{warning.title} ({count(n, 'cell')})" for warning, n in lane.kernel_warnings.items()
        )
        return f"broken by {'; '.join(warnings)}"
    cells = [cell for cell in lane.cells if came_to(cell).tcp_alone] or lane.cells
    counts, n = _counts(cells), len(cells)
    if broken := counts["broken"]:
        return f"broken: {broken} of {count(n, 'cell')} cannot be proven any more"
    moved = [part for verdict in _MOVED if (part := _moved(cells, verdict))]
    if moved:
        return f"{' and '.join(moved)} of {count(n, 'cell')}"
    mean = mean_change(cells)
    said = f", {_signed(mean)} in the mean" if mean is not None else ""
    together = next((f for f in lane.families if f.verdict in ("slower", "faster")), None)
    if together is not None:
        return describe_family(together)
    if set(counts) <= {"no effect"}:
        return f"no effect in {count(n, 'cell')}, equal to the bit"
    if set(counts) <= {"no effect", "phase only"}:
        return f"no effect but clock reads, in {counts['phase only']} of {count(n, 'cell')}"
    if unclear := counts["inconclusive"]:
        return f"inconclusive in {unclear} of {count(n, 'cell')}{said}"
    changed = sum(counts[verdict] for verdict in _OTHER)
    return f"no shift of load times{said}; other packets in {changed} of {count(n, 'cell')}"


def describe_family(family: Family) -> str:
    """Return what the drawn cells of one client came to together."""
    client = f" of {clean(family.client)}" if family.client else ""
    where = f"{count(family.cells, 'cell')}{client} over {count(family.seeds, 'seed')}"
    if family.verdict in ("slower", "faster"):
        return f"{family.verdict} by {_size(family.pct)} in the mean of {where}"
    if family.verdict == "no effect":
        return f"no effect in {where}"
    return f"{family.verdict} {_signed(family.pct)} in the mean of {where}"


def others(lane: LaneVerdicts) -> Iterator[str]:
    """Yield a sentence on the cells of each client that does not show TCP alone."""
    threaded = [cell for cell in lane.cells if not came_to(cell).tcp_alone]
    for client in dict.fromkeys(str(cell.axes.get("client") or "") for cell in threaded):
        cells = [cell for cell in threaded if str(cell.axes.get("client") or "") == client]
        counts = ", ".join(f"{n} {verdict}" for verdict, n in _counts(cells).items())
        yield (f"{clean(client)}: {counts}. Any change turns its threads, one that does nothing "
               "included: that alone is spread.")  # fmt: skip


def mean_change(cells: Sequence[CellFinding]) -> Estimate | None:
    """Return by how many percent the metric grew in the mean of ``cells``, over their seeds.

    A cell without draws is the same with every seed, and drawn ones with too few seeds to tell say
    nothing.  Without any drawn cell there is no interval; ``None``: no cell says anything.
    """
    exact, drawn = [], []
    for cell in cells:
        attribution = came_to(cell)
        if attribution.pct is None:
            continue
        if attribution.drawn and attribution.seeds >= LEAST_SEEDS:
            drawn.append(cell)
        elif not attribution.drawn:
            exact.append(attribution.pct.value)
    if not drawn:
        return Estimate(statistics.fmean(exact), None) if exact else None
    changes = [changes_pct(cell) for cell in drawn]
    blocks = sorted({block for change in changes for block in change})
    return estimate_paired_shift(
        statistics.fmean([*exact, *(change[block] for change in changes if block in change)])
        for block in blocks
    )


def _counts(cells: Sequence[CellFinding]) -> Counter[Attributed]:
    return Counter(came_to(cell).verdict for cell in cells)


def _moved(cells: Sequence[CellFinding], verdict: Attributed) -> str:
    """Return by how much those of ``cells`` moved that are of ``verdict``; empty without any."""
    chosen = [cell for cell in cells if came_to(cell).verdict == verdict]
    mean = mean_change(chosen)
    return f"{verdict} by {_size(mean)} in {len(chosen)}" if mean is not None else ""


def _signed(pct: Estimate) -> str:
    """Return a change with its sign and its interval."""
    if pct.interval is None:
        return f"{pct.value:+.2f} %"
    low, high = pct.interval.low, pct.interval.high
    return (
        f"{pct.value:+.2f} % ({pct.interval.level * 100:.0f} % interval {low:+.2f} to {high:+.2f})"
    )


def _size(pct: Estimate) -> str:
    """Return the size of a change, and its interval in the same direction."""
    if pct.interval is None:
        return f"{abs(pct.value):.2f} %"
    sign = 1 if pct.value > 0 else -1
    low, high = sorted((pct.interval.low * sign, pct.interval.high * sign))
    level = pct.interval.level * 100
    return f"{abs(pct.value):.2f} % ({level:.0f} % interval {low:.2f} to {high:.2f})"
