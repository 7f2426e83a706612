"""Cells of two results folders matched by condition, and what became of the trials on each side."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.records.cells import NOT_RUN, Axes, Cell, Key, key_of
from analysis.records.results import judge
from analysis.verdicts.compare.comparison import CellFinding, Side
from analysis.words import axis_value, clean, count
from testbed.base.errors import ConfigurationError
from testbed.model import Record

LONGEST_REASON = 300
"""Characters of a failed trial's reason that a verdict repeats."""


@dataclass(frozen=True, slots=True)
class Match:
    """One condition in both folders, or in one; ``axes`` are without the knobs under test."""

    axes: Axes
    base: Cell | None
    new: Cell | None

    @property
    def cells(self) -> tuple[Cell, Cell] | None:
        """Both cells, if the condition is in both folders."""
        return (self.base, self.new) if self.base is not None and self.new is not None else None


@dataclass(frozen=True, slots=True)
class BothSides:
    """A condition with numbers in both folders; ``base_ms`` is the base's median."""

    axes: Axes
    cells: tuple[Cell, Cell]
    sides: tuple[Side, Side]
    base_ms: float


def match_cells(
    base: Sequence[Cell], new: Sequence[Cell], without: Sequence[str]
) -> tuple[Match, ...]:
    """Pair cells by all knobs but ``without``: the base's in order, then those only in ``new``.

    Raises:
        ConfigurationError: cells are alike without these knobs, or no cell is in both.
    """
    ours, problems = _by_key(base, without, "BASE")
    theirs, more = _by_key(new, without, "NEW")
    problems += more
    if not problems and ours.keys().isdisjoint(theirs):
        problems = _nothing_shared(base, new, without)
    if problems:
        raise ConfigurationError(problems)
    return tuple(
        Match(
            {name: v for name, v in (ours.get(key) or theirs[key]).axes.items()
             if name not in without},
            ours.get(key),
            theirs.get(key),
        )
        for key in dict.fromkeys([*ours, *theirs])
    )  # fmt: skip


def values_of(cells: Sequence[Cell], name: str) -> str:
    """Return all values of a knob in words, in the order of the cells."""
    return ", ".join(dict.fromkeys(axis_value(name, cell.axes.get(name)) for cell in cells))


def side_of(cell: Cell | None) -> Side | None:
    """Return the trials of ``cell`` by outcome, and its numbers that count, by seed."""
    if cell is None:
        return None
    values = tuple(cell.by_seed.values())
    return Side(cell.outcomes, values, statistics.median(values) if values else None)


def both_sides(match: Match) -> BothSides | CellFinding:
    """Return the two cells of a match, or the verdict on it where a side has no number.

    That is inconclusive without one in the base, and while the new results' trials have yet to
    run; otherwise it is different.
    """
    base, new = side_of(match.base), side_of(match.new)
    if match.base is None or base is None or base.median_ms is None:
        reason = f"BASE has no {_lacking(match.base)}"
        return CellFinding(match.axes, "inconclusive", reason, base, new)
    if match.new is None or new is None or new.median_ms is None:
        reason = f"NEW has no {_lacking(match.new)}"
        if match.new is not None and not match.new.records:
            more = match.new.planned
            reason += "; run the rest with --resume"
            return CellFinding(match.axes, "inconclusive", reason, base, new, more_runs=more)
        return CellFinding(match.axes, "different", reason, base, new, "changed")
    return BothSides(match.axes, (match.base, match.new), (base, new), base.median_ms)


def describe_failures(records: Iterable[Record]) -> str:
    """Name the first record that does not count, with its reason, and how many more there are.

    Returns the empty text when all count.
    """
    failed = [record for record in records if judge(record)[0] != "ok"]
    if not failed:
        return ""
    outcome, reason = judge(failed[0])
    text = f"seed {failed[0].trial.seed} is {outcome.replace('_', ' ')}"
    if reason:
        words = clean(reason)
        text += f": {words[:LONGEST_REASON]}{'...' if len(words) > LONGEST_REASON else ''}"
    return text + (f" (and {count(len(failed) - 1, 'trial')} more)" if len(failed) > 1 else "")


def _by_key(
    cells: Sequence[Cell], without: Sequence[str], side: str
) -> tuple[dict[Key, Cell], list[str]]:
    cells_by_key: dict[Key, Cell] = {}
    for cell in cells:
        key = key_of(cell.axes, without)
        if key in cells_by_key:
            knobs = [name for name in without if len({c.axes.get(name) for c in cells}) > 1]
            values = "; ".join(f"{name} {values_of(cells, name)}" for name in knobs)
            return cells_by_key, [
                f"--across {','.join(knobs)}: {side} holds several cells that differ in nothing "
                f"else ({values}); run it with one value, with --only or --set"
            ]
        cells_by_key[key] = cell
    return cells_by_key, []


def list_apart(base: Sequence[Cell], new: Sequence[Cell]) -> list[str]:
    """Return the knobs whose values no cell of one folder has in common with one of the other."""
    names = dict.fromkeys(name for cell in (*base, *new) for name in cell.axes)
    return [
        name
        for name in names
        if {c.axes.get(name) for c in base}.isdisjoint({c.axes.get(name) for c in new})
    ]


def _nothing_shared(base: Sequence[Cell], new: Sequence[Cell], without: Sequence[str]) -> list[str]:
    apart = [name for name in list_apart(base, new) if name not in without]
    if not apart:
        return ["BASE and NEW have no cell in common: compare two runs of the same experiment"]
    return [
        f"BASE and NEW have no cell in common: {name} is {values_of(base, name)} in BASE and "
        f"{values_of(new, name)} in NEW; pass --across {name} if it is what is under test"
        for name in apart
    ]


def _lacking(cell: Cell | None) -> str:
    """Name what a cell without a number lacks, and why."""
    if cell is None:
        return "proven load: the cell is not there"
    if cell.proven:
        return f"{cell.metric.label} in any proven load"
    return f"proven load: {describe_failures(cell.records) or NOT_RUN}"
