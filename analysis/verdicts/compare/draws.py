"""Verdicts on cells of two environments, of which the other one is one more draw of each seed.

Different needs a chance below alpha, corrected for all cells and gains, and a change of the
minimum effect.  What moves no load of a seed by as much is the same without any test.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.records.cells import Axes, Block, Cell, key_of, varying_axes
from analysis.stats.draws import Draws, compare_draws, draws_to_tell, least_p_of_deals
from analysis.tables.table import PAIR_AXIS
from analysis.verdicts.compare.comparison import CellFinding, Effect, Side, Significance
from analysis.verdicts.compare.exact import pair_trials
from analysis.verdicts.compare.matching import BothSides, Match, both_sides, describe_failures
from analysis.words import count

DEALS = "permutation"
GAIN = "gain"
"""In place of the arm's value, in the row of what the second arm saves."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Cells and gains, and the p that all new draws have uniform ranks among the base's.

    That is ``None`` where there are too few draws for any p to be below alpha.
    """

    cells: list[CellFinding]
    gains: list[CellFinding]
    uniform: float | None


@dataclass(frozen=True, slots=True)
class _Sampled:
    """A cell, or a gain, with draws in both environments; ``least`` is what matters, in its unit.

    ``finding`` is what is said of it so far: the verdict ``same`` if seed by seed nothing moved,
    which is ``settled``.  ``copied`` says that on both sides several loads are the same one, so
    that no seed moves it and any change is of what differs.
    """

    finding: CellFinding
    draws: tuple[Draws, Draws]
    least: float
    settled: bool
    copied: bool


def judge_draws(matches: Sequence[Match], alpha: float, min_effect_pct: float) -> Judged:
    """Judge all cells and the gains of their arms together, as the correction is over them."""
    drafts = [_sample(match, min_effect_pct) for match in matches]
    gains = _gains(matches, min_effect_pct)
    sampled = [draft for draft in (*drafts, *gains) if isinstance(draft, _Sampled)]
    if not sampled:
        return Judged([draft for draft in drafts if isinstance(draft, CellFinding)], [], None)
    cells = [draft.draws for draft in drafts if isinstance(draft, _Sampled)]
    test = compare_draws([draft.draws for draft in sampled], len(cells))
    p_values = iter(test.corrected)
    concluded = [
        draft
        if isinstance(draft, CellFinding)
        else _conclude(draft, next(p_values), alpha, min_effect_pct)
        for draft in (*drafts, *gains)
    ]
    sizes = [max(len(draws[i]) for draws in cells) for i in (0, 1)]
    uniform = test.uniform if least_p_of_deals(*sizes) <= alpha else None
    return Judged(concluded[: len(drafts)], concluded[len(drafts) :], uniform)


def _sample(match: Match, min_effect_pct: float) -> _Sampled | CellFinding:
    both = both_sides(match)
    if isinstance(both, CellFinding):
        return both
    metric = both.cells[0].metric
    least = max(both.base_ms * min_effect_pct / 100.0, metric.grain)
    draws = _draws_of(both.cells[0]), _draws_of(both.cells[1])
    trials = pair_trials(both.cells)
    finding = CellFinding(
        both.axes, "same", "", *both.sides, effect=_effect(draws, both.base_ms), trials=trials
    )
    failing = _failing(both)
    if failing:
        reason = f"more loads fail in NEW: {failing}"
        return replace(finding, verdict="different", reason=reason, direction="changed")
    shared = both.cells[0].by_seed.keys() == both.cells[1].by_seed.keys()
    still = shared and all(abs(pair.difference_ms) < least or pair.same for pair in trials)
    copied = both.cells[0].copied and both.cells[1].copied
    return _Sampled(finding, draws, least, still, copied)


def _draws_of(cell: Cell) -> Draws:
    """Return the numbers of a cell by draw: one, where seeds draw nothing."""
    return dict([*cell.by_seed.items()][:1]) if cell.copied else cell.by_seed


def _failing(both: BothSides) -> str:
    """Name what fails in the new results, if a larger share of them does than in the base."""
    shares = [len(cell.by_seed) / len(cell.records) for cell in both.cells]
    if shares[1] >= shares[0]:
        return ""
    return describe_failures(both.cells[1].records) or f"some have no {both.cells[1].metric.label}"


def _effect(draws: tuple[Draws, Draws], reference: float) -> Effect:
    base, new = ([*side.values()] for side in draws)
    return Effect.unpaired(base, new, reference)


def _conclude(sampled: _Sampled, p: float, alpha: float, min_effect_pct: float) -> CellFinding:
    finding, effect = sampled.finding, sampled.finding.effect
    base, new = ([*side.values()] for side in sampled.draws)
    if sampled.settled or effect is None:
        bits = bool(finding.trials) and all(pair.same for pair in finding.trials)
        what = "is the same to the bit" if bits else f"moved by less than {min_effect_pct:g} %"
        return replace(finding, reason=f"each seed's number {what}")
    if sampled.copied and abs(effect.ms) >= sampled.least:
        reason = "moved, and seeds draw nothing here"
        return replace(finding, verdict="different", reason=reason, direction=effect.direction)
    finding = replace(finding, significance={DEALS: Significance(p, p)})
    if least_p_of_deals(len(base), len(new)) > alpha:
        return _too_few(finding, base, new, alpha)
    said = f"(p = {p:.2g}, corrected)"
    ends = max(abs(max(new) - max(base)), abs(min(new) - min(base)))
    if p > alpha:
        return replace(finding, reason=f"within the spread of draws {said}")
    if max(abs(effect.ms), abs(effect.mean_ms), ends) < sampled.least:
        return replace(finding, reason=f"apart {said}, by less than {min_effect_pct:g} %")
    if abs(effect.ms) >= sampled.least:
        return replace(finding, verdict="different", reason=f"beyond the spread of draws {said}",
                       direction=effect.direction)  # fmt: skip
    spread = f"draws spread otherwise, {min(base):.6g} to {max(base):.6g} in BASE, "
    return replace(finding, verdict="different",
                   reason=f"{spread}{min(new):.6g} to {max(new):.6g} in NEW {said}",
                   direction="changed")  # fmt: skip


def _too_few(
    finding: CellFinding, base: Sequence[float], new: Sequence[float], alpha: float
) -> CellFinding:
    n, m = len(base), len(new)
    more = draws_to_tell(n, m, alpha)
    within = sum(min(base) <= value <= max(base) for value in new)
    reason = (
        f"{within} of NEW's {count(m, 'draw')} {'lies' if within == 1 else 'lie'} within the range "
        f"of BASE's {count(n, 'draw')}; too few draws to say: {n} and {m} of {n + more} and "
        f"{m + more}, collect more (-n)"
    )
    return replace(finding, verdict="inconclusive", reason=reason, more_runs=more)


def _gains(matches: Sequence[Match], min_effect_pct: float) -> list[_Sampled]:
    """Return what the second arm saves in each condition that has both arms in both folders."""
    whole = [(match.axes, match.cells) for match in matches if match.cells is not None]
    arm = _arm_of([cells[0] for _, cells in whole])
    if arm is None:
        return []
    pairs: dict[object, dict[bool, tuple[Axes, tuple[Cell, Cell]]]] = {}
    for axes, cells in whole:
        pairs.setdefault(key_of(axes, (arm,)), {})[bool(axes[arm])] = axes, cells
    gains = (_gain(arm, pair, min_effect_pct) for pair in pairs.values() if len(pair) == 2)
    return [gain for gain in gains if gain is not None]


def _arm_of(cells: Sequence[Cell]) -> str | None:
    """Return the knob that is off and on: Fast Open where it is swept, else the first."""
    switches = [
        name
        for name in varying_axes(cells)
        if {type(cell.axes.get(name)) for cell in cells} == {bool}
    ]
    return PAIR_AXIS if PAIR_AXIS in switches else next(iter(switches), None)


def _gain(
    arm: str, pair: Mapping[bool, tuple[Axes, tuple[Cell, Cell]]], min_effect_pct: float
) -> _Sampled | None:
    """Return a gain, in the metric's unit: how much less the metric is with the arm, by draw."""
    (axes, off), (_, on) = pair[False], pair[True]
    whole = _saved(off[0], on[0]), _saved(off[1], on[1])
    if not whole[0] or not whole[1]:
        return None
    copied = [a.copied and b.copied for a, b in zip(off, on, strict=True)]
    draws = tuple(
        dict([*side.items()][:1]) if one else side for side, one in zip(whole, copied, strict=True)
    )
    sides = [
        Side({"ok": len(side)}, tuple(side.values()), statistics.median(side.values()))
        for side in whole
    ]
    reference = statistics.median(off[0].by_seed.values())
    least = max(reference * min_effect_pct / 100.0, off[0].metric.grain)
    both = draws[0], draws[1]
    effect = _effect(both, sides[0].median_ms or 0.0)
    finding = CellFinding({**axes, arm: GAIN}, "same", "", sides[0], sides[1], effect=effect)
    still = whole[0].keys() == whole[1].keys() and all(
        abs(whole[0][block] - whole[1][block]) < least for block in whole[0]
    )
    return _Sampled(finding, both, least, still, all(copied))


def _saved(off: Cell, on: Cell) -> dict[Block, float]:
    shared = off.by_seed.keys() & on.by_seed.keys()
    return {block: off.by_seed[block] - on.by_seed[block] for block in sorted(shared)}
