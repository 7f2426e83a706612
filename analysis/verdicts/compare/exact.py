"""Verdicts on cells of the virtual kernel: trial by trial, to the bit.

There is no chance in virtual time, so no test and no interval: the same trial in the same
environment gives the same bits, and one load says as much as twenty.  Where the environments
differ, draws are compared (``draws``), unless it is in pages or kernels.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.records.cells import Block, Cell
from analysis.records.metric import PLT, Metric
from analysis.verdicts.compare.comparison import CellFinding, Direction, Effect, TrialPair, Verdict
from analysis.verdicts.compare.matching import Match, both_sides, describe_failures
from analysis.words import count
from testbed.model import CAPTURE_FILE, HAR_FILE, Record

KEPT = (CAPTURE_FILE, HAR_FILE)


def judge_exactly(match: Match, equal: bool, min_effect_pct: float) -> CellFinding:
    """Compare a cell's trials by seed and repetition.

    ``equal`` says that nothing is under test: then any bit that differs is a difference.  Else
    the median of the trials' own differences must reach ``min_effect_pct`` of the base's median.
    """
    both = both_sides(match)
    if isinstance(both, CellFinding):
        return both
    ours, theirs = (cell.records_by_seed for cell in both.cells)
    before, after = (cell.by_seed for cell in both.cells)
    metric = both.cells[0].metric
    proven = list(before)
    pairs = pair_trials(both.cells)
    effect = _effect(pairs)
    broken = describe_failures(theirs[block] for block in proven if block in theirs)
    gone = [block for block in proven if block in theirs and block not in after]
    if gone and not broken:
        broken = f"seed {gone[0][0]} has no {metric.label}"
    absent = sum(block not in theirs for block in proven)
    if broken:
        reason = f"what is proven in BASE is not in NEW: {broken}"
        return CellFinding(
            both.axes, "different", reason, *both.sides, "changed", effect, trials=pairs
        )
    if effect is None:
        reason = (
            f"no trial is in both: {_seeds(ours)} in BASE, {_seeds(theirs)} in NEW; "
            "run NEW with the base's --seed"
        )
        more = len(proven)
        return CellFinding(both.axes, "inconclusive", reason, *both.sides, more_runs=more)
    verdict, direction, reason = _weigh(pairs, effect, equal, min_effect_pct, metric)
    missing = max(0, both.cells[1].planned - len(both.cells[1].records))
    if absent:
        reason += f"; {count(absent, 'trial')} of BASE {'is' if absent == 1 else 'are'} not in NEW"
    if verdict == "same" and absent and missing:
        verdict, reason = "inconclusive", f"so far {reason}: run the rest with --resume"
    return CellFinding(both.axes, verdict, reason, *both.sides, direction, effect,
                       more_runs=absent if verdict == "inconclusive" else None,
                       trials=pairs)  # fmt: skip


def first_unequal(cell: CellFinding) -> TrialPair | None:
    """Return the first trial of which a bit differs."""
    return next((pair for pair in cell.trials if not pair.same), None)


def pair_trials(cells: tuple[Cell, Cell]) -> tuple[TrialPair, ...]:
    """Pair all trials that have a number in both folders."""
    ours, theirs = (cell.records_by_seed for cell in cells)
    after, metric = cells[1].by_seed, cells[0].metric
    return tuple(
        pair_records(ours[block], theirs[block], metric)
        for block in cells[0].by_seed
        if block in after
    )


def pair_records(base: Record, new: Record, metric: Metric = PLT) -> TrialPair:
    """Pair the same trial of both folders; what a record does not have is not a number."""
    return TrialPair(
        base.trial.seed, base.trial.repetition, _value(base, metric), _value(new, metric),
        *(_same(base.artefacts.get(name), new.artefacts.get(name)) for name in KEPT),
    )  # fmt: skip


def _value(record: Record, metric: Metric) -> float:
    value = metric.of(record.measured)
    return float("nan") if value is None else value


def _same(base: str | None, new: str | None) -> bool | None:
    return None if base is None or new is None else base == new


def _effect(pairs: Sequence[TrialPair]) -> Effect | None:
    if not pairs:
        return None
    differences = [pair.difference_ms for pair in pairs]
    known = statistics.median(pair.base_ms for pair in pairs) > 0
    percents = [p.difference_ms / p.base_ms * 100.0 for p in pairs if known and p.base_ms > 0]
    pct = statistics.median(percents) if percents else None
    return Effect(statistics.median(differences), pct, statistics.fmean(differences))


def _weigh(
    pairs: Sequence[TrialPair], effect: Effect, equal: bool, min_effect_pct: float, metric: Metric
) -> tuple[Verdict, Direction | None, str]:
    unequal = [pair for pair in pairs if not pair.same]
    if not unequal:
        kept = all(pair.same_capture for pair in pairs)
        what = f"{metric.word} and capture" if kept else f"{metric.word} (a capture was not kept)"
        return "same", None, f"{what} are the same to the bit" if kept else f"same {what}"
    of = f"in {len(unequal)} of {count(len(pairs), 'trial')}"
    if equal:
        reason = f"the same environment gave other bits {of}: determinism is broken"
        return "different", effect.direction, reason
    large = effect.pct is None or abs(effect.pct) >= min_effect_pct
    if large and abs(effect.ms) > metric.grain:
        return "different", effect.direction, f"the {metric.word} changed {of}"
    worst = max(unequal, key=lambda pair: abs(pair.difference_ms))
    packets = any(p.same_capture is not True or p.base_ms != p.new_ms for p in unequal)
    within = metric.with_unit(f"{metric.grain:g}") if large else f"{min_effect_pct:g} %"
    median, most = (
        metric.with_unit(f"{value:+.{max(3, metric.places)}f}")
        for value in (effect.ms, worst.difference_ms)
    )
    return (
        "same",
        None,
        f"other {'packets' if packets else 'HAR files'} {of}, "
        f"the {metric.word} within {within} (median {median}; at most {most}, seed {worst.seed})",
    )


def _seeds(records: dict[Block, Record]) -> str:
    seeds = sorted({seed for seed, _ in records})
    if not seeds:
        return "none"
    whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    return f"seeds {seeds[0]}..{seeds[-1]}" if whole else f"seeds {', '.join(map(str, seeds))}"
