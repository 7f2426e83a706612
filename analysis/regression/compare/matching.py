"""Which cell of one results folder is which of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Axes, Cell, Key, key_of
from analysis.words import axis_value
from testbed.base.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Match:
    """One condition in both folders, or in one; ``axes`` are without the knobs under test."""

    axes: Axes
    base: Cell | None
    new: Cell | None


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
    """All values of a knob in words, in the order of the cells."""
    return ", ".join(dict.fromkeys(axis_value(name, cell.axes.get(name)) for cell in cells))


def _by_key(
    cells: Sequence[Cell], without: Sequence[str], side: str
) -> tuple[dict[Key, Cell], list[str]]:
    found: dict[Key, Cell] = {}
    for cell in cells:
        key = key_of(cell.axes, without)
        if key in found:
            knobs = [name for name in without if len({c.axes.get(name) for c in cells}) > 1]
            values = "; ".join(f"{name} {values_of(cells, name)}" for name in knobs)
            return found, [
                f"--across {','.join(knobs)}: {side} holds several cells that differ in nothing "
                f"else ({values}); run it with one value, with --only or --set"
            ]
        found[key] = cell
    return found, []


def _nothing_shared(base: Sequence[Cell], new: Sequence[Cell], without: Sequence[str]) -> list[str]:
    """Name the knobs that no cell of one folder has in common with one of the other."""
    names = dict.fromkeys(name for cell in (*base, *new) for name in cell.axes)
    apart = [
        name
        for name in names
        if name not in without
        and {c.axes.get(name) for c in base}.isdisjoint({c.axes.get(name) for c in new})
    ]
    if not apart:
        return ["BASE and NEW have no cell in common: compare two runs of the same experiment"]
    return [
        f"BASE and NEW have no cell in common: {name} is {values_of(base, name)} in BASE and "
        f"{values_of(new, name)} in NEW; pass --across {name} if it is what is under test"
        for name in apart
    ]
