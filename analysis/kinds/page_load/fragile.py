"""Fragile cells: loads that waited for a timer, and load times in two humps.

What happens to one load of six may happen to the next run's median.
"""

from __future__ import annotations

from analysis.records.cells import Cell
from analysis.stats.estimates import two_humps
from analysis.tables.table import PAIR_AXIS, ResultTable
from analysis.words import count, number, seconds
from testbed.results.captures import count_timeouts

MAX_CELLS = 6


def waits_ms(cell: Cell) -> list[float | None]:
    """Return how long each proven load that waited for a timer did; older records do not say."""
    waits: list[float | None] = []
    for proof in (record.proof for record in cell.proven if record.proof):
        if proof.waits is None:
            waits += [None] * (count_timeouts(proof) > 0)
        elif proof.waits.longest_ns:
            waits.append(proof.waits.longest_ns / 1e6)
    return waits


def longest_ms(cell: Cell) -> float | None:
    """Return the longest of these, if one is known."""
    return max((wait for wait in waits_ms(cell) if wait is not None), default=None)


def describe_fragile(table: ResultTable) -> list[str]:
    """Return a sentence for each cell in which a load waited, or whose load times have two humps.

    Of more than MAX_CELLS the first are named.
    """
    said = [sentence for cell in table.cells if (sentence := _describe(table, cell))]
    more = len(said) - MAX_CELLS
    if more > 0:
        said[MAX_CELLS:] = [
            f"So did {count(more, 'more cell')}: table.csv has the waits of all, the strips of "
            "report.html their loads."
        ]
    return said


def _describe(table: ResultTable, cell: Cell) -> str:
    name = table.name_row(cell.axes)
    if table.paired:
        name += f", with{'' if cell.axes[PAIR_AXIS] else 'out'} Fast Open"
    parts = []
    waits, longest = waits_ms(cell), longest_ms(cell)
    if waits:
        most = "up to " if len(waits) > 1 else ""
        long = f" {most}{number(longest / 1000.0, 2)} s" if longest else ""
        loads = f"{len(waits)} of {count(len(cell.proven), 'load')}"
        parts.append(f"{loads} waited{long} for {_timer(cell)}")
    humps = two_humps(cell.by_seed.values()) if cell.metric.is_time else None
    if humps:
        ranges = (f"{len(hump)} {_around(hump)}" for hump in humps)
        parts.append(f"the times lie in two humps, {' and '.join(ranges)}")
    return f"{name}: {'; '.join(parts)}." if parts else ""


def _timer(cell: Cell) -> str:
    counted = any(count_timeouts(record.proof) for record in cell.proven if record.proof)
    return "a retransmission time-out" if counted else "a lost question for a name"


def _around(hump: tuple[float, ...]) -> str:
    ends = dict.fromkeys(seconds(end) for end in (hump[0], hump[-1]))
    return f"{'at' if len(ends) == 1 else 'from'} {' to '.join(ends)} s"
