"""What the table says, in sentences that follow from its numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from analysis.cells import spread_of
from analysis.coverage import describe
from analysis.table import Pair, Table
from analysis.words import axis_value, count, number, signed


def findings(table: Table) -> list[str]:
    """Return short sentences about ``table``; none is said that its numbers do not bear."""
    said = [_proven(table), *_replayed(table)]
    if table.paired:
        measured = [pair for pair in table.pairs if pair.improvement_pct is not None]
        if measured:
            said += [_gain(measured), *_growth(measured), *_beside_paper(measured)]
    return said


def _proven(table: Table) -> str:
    planned = sum(cell.planned for cell in table.cells)
    proven = sum(len(cell.proven) for cell in table.cells)
    if planned and proven == planned:
        return f"All {count(planned, 'load')} are proven on the wire."
    return (
        f"{proven:,} of {count(planned, 'load')} are proven on the wire; "
        f"the other {planned - proven:,} give{'s' * (planned - proven == 1)} no number and "
        f"say{'s' * (planned - proven == 1)} why below."
    )


def _replayed(table: Table) -> list[str]:
    return [] if table.coverage.whole else [f"Replay: {describe(table.coverage)}"]


def _gain(pairs: Sequence[Pair]) -> str:
    ordered = sorted(pairs, key=_gain_of)
    least, most = ordered[0], ordered[-1]
    what = "Fast Open changed the page load time by"
    if _gain_of(least) > 0:
        what = "Fast Open made every measured page load faster, by"
    elif _gain_of(most) <= 0:
        what = "Fast Open made no measured page load faster; the change is"
    if len(ordered) == 1:
        return f"{what} {number(_gain_of(most), 1)} % ({_name(most)})."
    return (
        f"{what} {number(_gain_of(least), 1)} % ({_name(least)}) "
        f"to {number(_gain_of(most), 1)} % ({_name(most)})."
    )


def _growth(pairs: Sequence[Pair]) -> list[str]:
    ladders: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        rest = repr({n: v for n, v in pair.axes.items() if n != "rtt_ms"})
        ladders.setdefault(rest, []).append((float(pair.axes["rtt_ms"]), _gain_of(pair)))
    climbs = [sorted(steps) for steps in ladders.values() if len(steps) > 1]
    if not climbs:
        return []
    growing = sum(all(a[1] < b[1] for a, b in pairwise(steps)) for steps in climbs)
    return [
        "The improvement grows with every step of the round-trip time for "
        f"{growing} of {count(len(climbs), 'page')}."
    ]


def _beside_paper(pairs: Sequence[Pair]) -> list[str]:
    gaps = spread_of(
        _gain_of(pair) - pair.paper.improvement_pct for pair in pairs if pair.paper is not None
    )
    if gaps is None:
        return []
    return [
        f"Ours minus the paper's improvement: median {signed(gaps.median, 1)}, "
        f"from {signed(gaps.low, 1)} to {signed(gaps.high, 1)} percentage points "
        f"over {count(gaps.n, 'row')}."
    ]


def _gain_of(pair: Pair) -> float:
    return pair.improvement_pct.median if pair.improvement_pct else 0.0


def _name(pair: Pair) -> str:
    return ", ".join(axis_value(n, pair.axes.get(n)) for n in ("page", "rtt_ms"))
