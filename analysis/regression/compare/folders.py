"""Compare two results folders: read, refuse what is unequal, judge each cell, look at packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analysis.records.cells import Cell, cells_of, varying_axes
from analysis.records.results import Results, read_results
from analysis.regression.compare.captures import differ_on_the_wire
from analysis.regression.compare.comparison import (
    MIN_EFFECT_PCT,
    CellFinding,
    CompareOptions,
    Comparison,
)
from analysis.regression.compare.environments import (
    differing_parts,
    kernel_of,
    parts_of,
    refuse_unequal,
    split_across,
)
from analysis.regression.compare.estimated import judge_by_chance
from analysis.regression.compare.exact import first_unequal, judge_exactly
from analysis.regression.compare.matching import Match, match_cells, values_of
from analysis.tables.table import ALWAYS_SHOWN
from analysis.words import clean, count
from testbed.model import Record

VIRTUAL = "virtual"


def compare_results(base: Path, new: Path, options: CompareOptions | None = None) -> Comparison:
    """Hold the results in ``new`` against those in ``base``, cell by cell.

    Raises:
        ConfigurationError: the environments or kernels are unequal and not under test, a folder
            mixes what is never pooled, or the options make no sense.
        StorageError: a folder cannot be read.
    """
    options = options or CompareOptions()
    options.check()
    one, other = read_results(base), read_results(new)
    ours, theirs = cells_of(one), cells_of(other)
    named = dict.fromkeys(name for cell in (*ours, *theirs) for name in cell.axes)
    known = parts_of(one) | parts_of(other)
    environment, knobs = split_across(options.across, known, named)
    parts = differing_parts(one, other)
    refuse_unequal(one, other, parts, environment)
    matches = match_cells(ours, theirs, knobs)
    tested = {name: (values_of(ours, name), values_of(theirs, name)) for name in knobs}
    kernel = kernel_of(one) or VIRTUAL
    least = options.min_effect_pct
    least = MIN_EFFECT_PCT.get(kernel, max(MIN_EFFECT_PCT.values())) if least is None else least
    both = [match for match in matches if match.base is not None]
    if kernel == VIRTUAL:
        equal = not parts and all(a == b for a, b in tested.values())
        cells = [_with_packets(judge_exactly(m, equal, least), m, one, other) for m in both]
    else:
        cells = judge_by_chance(both, options.alpha, least)
    return Comparison(
        base=str(base),
        new=str(new),
        kernel=kernel,
        alpha=options.alpha,
        min_effect_pct=least,
        allow_faster=options.allow_faster,
        parts=parts,
        knobs=tested,
        names=_names([*ours, *theirs], knobs),
        cells=tuple(cells),
        added=tuple(match.axes for match in matches if match.base is None),
        notes=tuple(_notes(one, other, matches)),
    )


def _names(cells: Sequence[Cell], knobs: Sequence[str]) -> tuple[str, ...]:
    """The axes that tell the cells apart, and those that every table shows."""
    varying = varying_axes(cells)
    names = (*ALWAYS_SHOWN, *(name for name in varying if name not in ALWAYS_SHOWN))
    return tuple(name for name in names if name not in knobs)


def _with_packets(cell: CellFinding, match: Match, base: Results, new: Results) -> CellFinding:
    """Add the first packet that differs to a cell that is different."""
    pair = first_unequal(cell)
    if cell.verdict != "different" or pair is None or match.base is None or match.new is None:
        return cell
    block = pair.seed, pair.repetition
    records = _record(match.base, block), _record(match.new, block)
    found, note = differ_on_the_wire(base.folder, records[0], new.folder, records[1])
    return replace(cell, packets=found, packets_seed=pair.seed, packets_note=note)


def _record(cell: Cell, block: tuple[int, int]) -> Record:
    return next(r for r in cell.records if (r.trial.seed, r.trial.repetition) == block)


def _notes(base: Results, new: Results, matches: Sequence[Match]) -> list[str]:
    added = sum(match.base is None for match in matches)
    notes = []
    if added:
        notes.append(f"{count(added, 'cell')} of NEW {'is' if added == 1 else 'are'} not in BASE.")
    for side, results in (("BASE", base), ("NEW", new)):
        missing = sum(
            max(0, cell.planned - len(cell.records))
            for match in matches
            if (cell := match.base if side == "BASE" else match.new) is not None
        )
        if missing:
            notes.append(
                f"{count(missing, 'planned trial')} of {side} ({clean(str(results.folder))}) "
                "did not end."
            )
    return notes
