"""Comparison of two results folders: read, refuse what is unequal, judge cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analysis.records.accounts import differences_ms, mean_account
from analysis.records.cells import Cell, cells_of, describe_absence, facts_of, varying_axes
from analysis.records.kernel_warnings import find_kernel_warnings
from analysis.records.kind import records_of
from analysis.records.metric import PLT
from analysis.records.results import Results, no_collection, read_results
from analysis.tables.table import kind_of_cells
from analysis.verdicts.compare.attribution import attribute_cell, blame, tcp_alone
from analysis.verdicts.compare.captures import Pair, differ_on_the_wire, read_captures
from analysis.verdicts.compare.clocks import clocks_of, judge_by_tolerance
from analysis.verdicts.compare.comparison import (
    MIN_EFFECT_PCT,
    VIRTUAL,
    CellFinding,
    CompareOptions,
    Comparison,
    Part,
)
from analysis.verdicts.compare.draws import Judged, judge_draws
from analysis.verdicts.compare.environments import (
    are_draws,
    differing_parts,
    kernel_of,
    parts_of,
    refuse_unequal,
    split_across,
)
from analysis.verdicts.compare.estimated import judge_by_tests
from analysis.verdicts.compare.exact import first_unequal, judge_exactly
from analysis.verdicts.compare.family import settle
from analysis.verdicts.compare.kernels import Kernels, change_of, savings_of
from analysis.verdicts.compare.kind import verdicts_of
from analysis.verdicts.compare.matching import Match, match_cells, values_of
from analysis.words import clean, count
from testbed.base.errors import ConfigurationError
from testbed.model import Record

MISSES = "kernel_misses"
"""The fact of a manifest's environment that says what a kernel has not of its patches."""


def compare_results(base: Path, new: Path, options: CompareOptions | None = None) -> Comparison:
    """Compare the results in ``new`` with those in ``base``, cell by cell.

    Of a virtual and a real kernel the virtual one is the base, whatever the order.  Cells that one
    of two kernels lacks are left out.

    Raises:
        ConfigurationError: pages are unequal and not under test, a folder mixes what is never
            pooled, no load of a folder has the metric, or the options make no sense.
        StorageError: a folder cannot be read.
    """
    with no_collection():
        return _compare(base, new, options or CompareOptions())


def _compare(base: Path, new: Path, options: CompareOptions) -> Comparison:
    options.check()
    old, later = read_results(base), read_results(new)
    swapped = kernel_of(later) == VIRTUAL != kernel_of(old)
    if swapped:
        old, later, base, new = later, old, new, base
    ours, theirs = (cells_of(results, options.metric) for results in (old, later))
    _refuse_without_numbers(ours, theirs)
    named = dict.fromkeys(name for cell in (*ours, *theirs) for name in cell.axes)
    known = parts_of(old) | parts_of(later)
    environment, knobs = split_across(options.across, known, named)
    parts = differing_parts(old, later)
    refuse_unequal(old, later, parts, environment)
    matches = match_cells(ours, theirs, knobs)
    tested = {name: (values_of(ours, name), values_of(theirs, name)) for name in knobs}
    kernels = _kernels(old, later, matches, knobs)
    kernel = kernel_of(later)
    least = options.min_effect_pct
    least = MIN_EFFECT_PCT.get(kernel, max(MIN_EFFECT_PCT.values())) if least is None else least
    two = kernels is not None or options.attribute
    both = [m for m in matches if m.base is not None and (m.new is not None or not two)]
    equal = not parts and all(a == b for a, b in tested.values())
    kind = kind_of_cells(ours)
    judge = verdicts_of(kind).judge
    drawn: Judged | None = None
    if judge is not None:
        exact = kernel_of(old) == kernel_of(later) == VIRTUAL
        cells = [_with_packets(judge(m, exact, equal), m, old, later, two) for m in both]
    elif kernel_of(old) != kernel_of(later):
        cells = [judge_by_tolerance(match, least) for match in both]
    elif kernel == VIRTUAL and are_draws(parts) and not two:
        drawn = judge_draws(both, options.alpha, least)
        cells = [
            _with_packets(cell, m, old, later, two)
            for cell, m in zip(drawn.cells, both, strict=True)
        ]
    elif kernel == VIRTUAL:
        cells = [_with_packets(judge_exactly(m, equal, least), m, old, later, two) for m in both]
        if two:
            cells = [_attributed(cell, m, old, later) for cell, m in zip(cells, both, strict=True)]
            cells = [*settle(cells, next((cell.metric for cell in ours), options.metric))]
    else:
        cells = judge_by_tests(both, options.alpha, least)
        if kernels is not None:
            cells = [_with_clocks(cell, m) for cell, m in zip(cells, both, strict=True)]
    cells = [_with_account(*each, paired=drawn is None) for each in zip(cells, both, strict=True)]
    notes = _notes(old, later, matches, len(matches) - len(both) if two else 0)
    if kernels is not None:
        notes += _client_notes(parts)
    if swapped:
        notes.append("The virtual kernel is BASE, whatever the order of the folders.")
    return Comparison(
        base=str(base), new=str(new), kernel=kernel, alpha=options.alpha, min_effect_pct=least,
        allow_faster=options.allow_faster, parts=parts, knobs=tested,
        names=_names([*ours, *theirs], knobs), cells=tuple(cells),
        added=tuple(match.axes for match in matches if match.base is None),
        notes=tuple(notes), kernels=kernels,
        metric=next((cell.metric for cell in (*ours, *theirs)), options.metric),
        kind=kind, drawn=drawn is not None,
        gains=tuple(drawn.gains) if drawn else (),
        uniform=drawn.uniform if drawn else None,
        misses=clean(facts_of(later.manifest).get(MISSES, "")),
    )  # fmt: skip


def _refuse_without_numbers(base: Sequence[Cell], new: Sequence[Cell]) -> None:
    """Refuse a folder whose proven loads all lack the metric.

    Raises:
        ConfigurationError: naming the clients.
    """
    problems = [
        f"{side}: {sentence}"
        for side, cells in (("BASE", base), ("NEW", new))
        if any(cell.proven for cell in cells) and not any(cell.by_seed for cell in cells)
        for sentence in describe_absence(cells)
    ]
    if problems:
        raise ConfigurationError(problems)


def _kernels(
    base: Results, new: Results, matches: Sequence[Match], knobs: Sequence[str]
) -> Kernels | None:
    """The two kernels, if they are two; a folder without any record has no version yet."""
    ours, theirs = base.identity, new.identity
    if None in (ours.kernel_version, theirs.kernel_version) or (
        (ours.kernel, ours.kernel_version) == (theirs.kernel, theirs.kernel_version)
    ):
        return None
    shared = [match.cells for match in matches if match.cells is not None]
    savings = savings_of((a for a, _ in shared), (b for _, b in shared), knobs)
    return Kernels(ours, theirs, savings)


def _names(cells: Sequence[Cell], knobs: Sequence[str]) -> tuple[str, ...]:
    """The axes that tell the cells apart, and those that every table shows."""
    varying = varying_axes(cells)
    shown = records_of(cells[0].kind).axes if cells else ()
    names = (*shown, *(name for name in varying if name not in shown))
    return tuple(name for name in names if name not in knobs)


def _with_packets(
    cell: CellFinding, match: Match, base: Results, new: Results, two: bool
) -> CellFinding:
    """Add the first packet that differs to a cell that is different, or of two kernels."""
    pair = first_unequal(cell) or (cell.trials[0] if two and cell.trials else None)
    cells, folders = match.cells, (base.folder, new.folder)
    if pair is None or cells is None or (cell.verdict != "different" and not two):
        return cell
    block = pair.seed, pair.repetition
    records = cells[0].records_by_seed[block], cells[1].records_by_seed[block]
    name = verdicts_of(cells[0].kind).capture(*records)
    captures, problem = read_captures(folders, records, name)
    packets, note = differ_on_the_wire(records, captures, problem, name)
    change = change_of(cells, records, captures, packets) if two and cell.has_numbers else None
    return replace(cell, packets=packets, packets_seed=pair.seed, packets_note=note,
                   change=change)  # fmt: skip


def _attributed(cell: CellFinding, match: Match, base: Results, new: Results) -> CellFinding:
    cells = match.cells
    if cells is None:
        return cell

    def read(base_record: Record, new_record: Record) -> Pair | None:
        return read_captures((base.folder, new.folder), (base_record, new_record))[0]

    alone = tcp_alone(base.manifest) & tcp_alone(new.manifest)
    attribution = attribute_cell(cells, read, alone)
    warnings = (
        find_kernel_warnings(results.folder, side.records)
        for results, side in zip((base, new), cells, strict=True)
    )
    attribution = blame(attribution, *warnings)
    if attribution.kernel_warnings:  # whatever became of the loads
        cell = replace(cell, verdict="different", reason=attribution.reason)
    return replace(cell, attribution=attribution)


def _with_account(cell: CellFinding, match: Match, *, paired: bool) -> CellFinding:
    """Add to a slower or faster cell what its loads spend longer on: ``paired``, the same ones."""
    cells = match.cells
    ways = {cell.direction, cell.attribution.verdict if cell.attribution else None}
    if cells is None or cells[0].metric != PLT or ways.isdisjoint(("slower", "faster")):
        return cell
    blocks = {(trial.seed, trial.repetition) for trial in cell.trials if paired}
    base, new = (mean_account(side.proven, blocks) for side in cells)
    return replace(cell, moved_ms=differences_ms(base, new))


def _with_clocks(cell: CellFinding, match: Match) -> CellFinding:
    if match.cells is None or not cell.has_numbers:
        return cell
    return replace(cell, clocks=clocks_of(match.cells))


def _notes(base: Results, new: Results, matches: Sequence[Match], left_out: int) -> list[str]:
    notes = []
    added = sum(match.base is None for match in matches)
    if left_out:
        is_are = "is" if left_out == 1 else "are"
        notes.append(f"{count(left_out, 'cell')} {is_are} of one kernel only and left out.")
    elif added:
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


def _client_notes(parts: Sequence[Part]) -> list[str]:
    return [
        f"{part.name.partition('.')[2]} is {part.base} in BASE and {part.new} in NEW."
        for part in parts
        if part.name.startswith("version.")
    ]
