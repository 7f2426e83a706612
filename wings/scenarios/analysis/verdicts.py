"""Verdicts on scenarios: by what became of each promise, and by the packets of all hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.records.cells import Cell
from analysis.tables.summary import captures_of
from analysis.verdicts.compare.comparison import CellFinding, Effect
from analysis.verdicts.compare.exact import pair_records
from analysis.verdicts.compare.kind import VerdictKind
from analysis.verdicts.compare.matching import Match, both_sides
from testbed.model import CAPTURE_FILE, Record
from wings.scenarios.analysis.records import results_of, verdict_of


def judge_promise(match: Match, exact: bool, equal: bool) -> CellFinding:
    """Compare what became of a promise.

    ``exact`` says that both kernels run in virtual time, where packets can be compared to the bit,
    and ``equal`` that nothing is under test: then no packet may differ.
    """
    both = both_sides(match)
    if isinstance(both, CellFinding):
        return both
    base, new = both.cells
    known = {_block(record): record for record in base.proven}
    shared = [(known[_block(r)], r) for r in new.proven if _block(r) in known]
    pairs = tuple(
        replace(pair_records(*each, base.metric), same_capture=not differing_captures(*each))
        for each in shared
    )
    difference = float(_failed(new) - _failed(base))
    effect = Effect(difference, None, difference) if difference else None
    before, after = verdict_of(base), verdict_of(new)
    others = ", ".join(dict.fromkeys(n for each in shared for n in differing_captures(*each)))
    different = before != after or (exact and equal and others != "")
    reason = f"{before} in both"
    if before != after:
        reason = f"the promise was {before} in BASE and is {after} in NEW"
        if said := _first_difference(new) or _first_difference(base):
            reason += f": {said}"
    elif different:
        reason = f"the same environment gave other packets: determinism is broken: {others} differ"
    elif exact and others:
        reason += f", by other packets: {others} differ"
    elif exact:
        reason += ", and the captures are the same to the bit"
    return CellFinding(
        both.axes, "different" if different else "same", reason, *both.sides,
        "changed" if different else None, effect, trials=pairs if exact else (),
    )  # fmt: skip


def differing_captures(base: Record, new: Record) -> Sequence[str]:
    """Return the names of the captures of one trial that are not the same to the bit."""
    ours, theirs = captures_of(base), captures_of(new)
    return [name for name in dict.fromkeys([*ours, *theirs]) if ours.get(name) != theirs.get(name)]


def _block(record: Record) -> tuple[int, int]:
    return record.trial.seed, record.trial.repetition


def _failed(cell: Cell) -> int:
    return max((result.failed_checks for result in results_of(cell)), default=0)


def _first_difference(cell: Cell) -> str:
    verdict = verdict_of(cell)
    gravest = (r.differences for r in results_of(cell) if r.verdict == verdict)
    return next((differences[0] for differences in gravest if differences), "")


DESCRIPTION = VerdictKind(
    judge=judge_promise, rule="Scenarios: same is what became of the same promise.",
    capture=lambda base, new: next(iter(differing_captures(base, new)), CAPTURE_FILE),
    keeps_captures=True,
)  # fmt: skip
