"""What became of a cell's trials on each side, before any load time is looked at."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from analysis.records.cells import NOT_RUN, Cell
from analysis.records.results import judge
from analysis.regression.compare.comparison import CellFinding, Side
from analysis.regression.compare.matching import Match
from analysis.words import clean, count
from testbed.model import Record

LONGEST_REASON = 300


def side_of(cell: Cell | None) -> Side | None:
    """The trials of ``cell`` by outcome, and the load times that count, in order of seed."""
    if cell is None:
        return None
    times = tuple(cell.plt_by_seed.values())
    return Side(cell.outcomes, times, statistics.median(times) if times else None)


def unfounded(match: Match) -> CellFinding | None:
    """The verdict on a cell that has a load time on one side only, or on none.

    Without one in the base nothing can be said, nor while the new results' trials have yet to run.
    Otherwise what was there is gone, and that is a difference.
    """
    base, new = side_of(match.base), side_of(match.new)
    if match.base is None or base is None or base.median_ms is None:
        return CellFinding(
            match.axes, "inconclusive", f"BASE has no proven load: {_state(match.base)}", base, new
        )
    if match.new is None or new is None or new.median_ms is None:
        reason = f"NEW has no proven load: {_state(match.new)}"
        if match.new is not None and not match.new.records:
            more = match.new.planned
            reason += "; run the rest with --resume"
            return CellFinding(match.axes, "inconclusive", reason, base, new, more_runs=more)
        return CellFinding(match.axes, "different", reason, base, new, "changed")
    return None


def describe_failures(records: Iterable[Record]) -> str:
    """The first record that does not count, with its seed, outcome and reason, and how many more.

    Returns the empty text when all count.
    """
    failed = [record for record in records if judge(record)[0] != "ok"]
    if not failed:
        return ""
    outcome, reason = judge(failed[0])
    told = f"seed {failed[0].trial.seed} is {outcome.replace('_', ' ')}"
    if reason:
        words = clean(reason)
        told += f": {words[:LONGEST_REASON]}{'...' if len(words) > LONGEST_REASON else ''}"
    return told + (f" (and {count(len(failed) - 1, 'trial')} more)" if len(failed) > 1 else "")


def _state(cell: Cell | None) -> str:
    if cell is None:
        return "the cell is not there"
    return describe_failures(cell.records) or NOT_RUN
