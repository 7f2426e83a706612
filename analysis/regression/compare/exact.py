"""The verdict on a cell of the virtual kernel: trial by trial, to the bit.

There is no chance in virtual time, so no test and no interval: the same trial in the same
environment gives the same bits, and one load says as much as twenty.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.records.cells import Cell
from analysis.records.results import judge
from analysis.regression.compare.captures import capture_hash
from analysis.regression.compare.comparison import (
    CellFinding,
    Direction,
    Effect,
    TrialPair,
    Verdict,
)
from analysis.regression.compare.matching import Match
from analysis.regression.compare.outcomes import describe_failures, side_of, unfounded
from analysis.words import count
from testbed.model import Record

Block = tuple[int, int]


def judge_exactly(match: Match, equal: bool, min_effect_pct: float) -> CellFinding:
    """Compare a cell's trials by seed and repetition.

    ``equal`` says that nothing is under test: then any bit that differs is a difference.  Else
    the median of the trials' own differences must reach ``min_effect_pct`` of the base's median.
    """
    none = unfounded(match)
    if none is not None or match.base is None or match.new is None:
        return none or CellFinding(match.axes, "inconclusive", "no cell", None, None)
    base, new = side_of(match.base), side_of(match.new)
    ours, theirs = _by_block(match.base), _by_block(match.new)
    proven = [block for block, record in ours.items() if judge(record)[0] == "ok"]
    pairs = tuple(
        pair_records(ours[block], theirs[block])
        for block in proven
        if block in theirs and judge(theirs[block])[0] == "ok"
    )
    effect = _effect(pairs)
    broken = describe_failures(theirs[block] for block in proven if block in theirs)
    absent = sum(block not in theirs for block in proven)
    if broken:
        reason = f"what is proven in BASE is not in NEW: {broken}"
        return CellFinding(
            match.axes, "different", reason, base, new, "changed", effect, trials=pairs
        )
    if effect is None:
        reason = (
            f"no trial is in both: {_seeds(ours)} in BASE, {_seeds(theirs)} in NEW; "
            "run NEW with the base's --seed"
        )
        return CellFinding(match.axes, "inconclusive", reason, base, new, more_runs=len(proven))
    verdict, direction, reason = _weigh(pairs, effect, equal, min_effect_pct)
    missing = max(0, match.new.planned - len(match.new.records))
    if absent:
        reason += f"; {count(absent, 'trial')} of BASE {'is' if absent == 1 else 'are'} not in NEW"
    if verdict == "same" and absent and missing:
        verdict, reason = "inconclusive", f"so far {reason}: run the rest with --resume"
    return CellFinding(
        match.axes, verdict, reason, base, new, direction, effect,
        more_runs=absent if verdict == "inconclusive" else None, trials=pairs,
    )  # fmt: skip


def first_unequal(cell: CellFinding) -> TrialPair | None:
    """The first trial of which a bit differs."""
    return next((pair for pair in cell.trials if not pair.same), None)


def _by_block(cell: Cell) -> dict[Block, Record]:
    return {(r.trial.seed, r.trial.repetition): r for r in cell.records}


def pair_records(base: Record, new: Record) -> TrialPair:
    """The same trial in both folders; both have a load time, or it is not a number."""
    hashes = capture_hash(base), capture_hash(new)
    return TrialPair(
        base.trial.seed,
        base.trial.repetition,
        base.load.plt_ms if base.load else float("nan"),
        new.load.plt_ms if new.load else float("nan"),
        None if None in hashes else hashes[0] == hashes[1],
    )


def _effect(pairs: Sequence[TrialPair]) -> Effect | None:
    if not pairs:
        return None
    differences = [pair.difference_ms for pair in pairs]
    base = statistics.median(pair.base_ms for pair in pairs)
    shift = statistics.median(differences)
    pct = statistics.median(
        pair.difference_ms / pair.base_ms * 100.0 for pair in pairs if pair.base_ms > 0
    ) if any(pair.base_ms > 0 for pair in pairs) else None  # fmt: skip
    return Effect(shift, pct if base > 0 else None, statistics.fmean(differences))


def _weigh(
    pairs: Sequence[TrialPair], effect: Effect, equal: bool, min_effect_pct: float
) -> tuple[Verdict, Direction | None, str]:
    unequal = [pair for pair in pairs if not pair.same]
    if not unequal:
        kept = all(pair.same_capture for pair in pairs)
        what = "load time and capture" if kept else "load time (a capture was not kept)"
        return "same", None, f"{what} are the same to the bit" if kept else f"same {what}"
    of = f"in {len(unequal)} of {count(len(pairs), 'trial')}"
    if equal:
        reason = f"the same environment gave other bits {of}: determinism is broken"
        return "different", direction_of(effect), reason
    large = effect.pct is None or abs(effect.pct) >= min_effect_pct
    if large and effect.ms:
        return "different", direction_of(effect), f"the load time changed {of}"
    worst = max(unequal, key=lambda pair: abs(pair.difference_ms))
    return (
        "same",
        None,
        f"other packets {of}, the load time within {min_effect_pct:g} % "
        f"(median {effect.ms:+.3f} ms; at most {worst.difference_ms:+.3f} ms, seed {worst.seed})",
    )


def direction_of(effect: Effect) -> Direction:
    """The direction of an effect's size."""
    moved = effect.ms or effect.mean_ms
    return "changed" if moved == 0 else "slower" if moved > 0 else "faster"


def _seeds(records: dict[Block, Record]) -> str:
    seeds = sorted({seed for seed, _ in records})
    if not seeds:
        return "none"
    whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    return f"seeds {seeds[0]}..{seeds[-1]}" if whole else f"seeds {', '.join(map(str, seeds))}"
