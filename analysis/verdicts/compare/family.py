"""Family of cells whose loads are drawn: what they came to together, so that luck in one is none.

Of 24 cells one or two leave out 0 by chance.  So cells of a client move only where all of them say
so: the interval of their mean leaves out 0, or the signs of seeds agree within cells as chance
would hardly have it (`analysis.stats.signs`).  A change that does nothing errs so in a share of
5 % of kernels for each of the two, and not of cells; with 5 seeds of 6 %.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.records.metric import Metric
from analysis.stats.estimates import LEVEL, Estimate, level_of_range
from analysis.stats.shift import Block, estimate_paired_shift
from analysis.stats.signs import p_of_signs
from analysis.verdicts.compare.attribution import LEAST_SEEDS, Attributed, harmless_pct
from analysis.verdicts.compare.comparison import CellFinding


@dataclass(frozen=True, slots=True)
class Family:
    """What all drawn cells of one client came to together."""

    client: str
    """Their client; empty where there is none."""
    verdict: Attributed
    """What they came to: slower, faster, spread, no effect, or inconclusive."""
    cells: int
    """How many they are."""
    seeds: int
    """How many seeds they have."""
    pct: Estimate
    """How much the metric grew in percent of the base's, in the mean of the cells."""
    chance: float
    """The p that the signs of seeds agree so within the cells."""

    @property
    def has_moved(self) -> bool:
        """Whether anything but chance moved any of the cells."""
        least = 1.0 - min(LEVEL, level_of_range(self.seeds))
        return self.verdict in ("slower", "faster") or self.chance <= least


def families_of(cells: Sequence[CellFinding], metric: Metric) -> tuple[Family, ...]:
    """Return the families among ``cells``, one for each client with drawn cells."""
    members: dict[str, list[CellFinding]] = defaultdict(list)
    for cell in cells:
        if cell.attribution is not None and cell.attribution.drawn and cell.trials:
            members[str(cell.axes.get("client") or "")].append(cell)
    return tuple(_family(client, own, metric) for client, own in members.items())


def settle(cells: Sequence[CellFinding], metric: Metric) -> tuple[CellFinding, ...]:
    """Return ``cells`` with ``spread`` for what may be the luck of one among many."""
    families = {family.client: family for family in families_of(cells, metric)}
    return tuple(_settle(cell, families) for cell in cells)


def _settle(cell: CellFinding, families: Mapping[str, Family]) -> CellFinding:
    attribution = cell.attribution
    if attribution is None or not attribution.drawn:
        return cell
    family = families.get(str(cell.axes.get("client") or ""))
    if family is None or family.has_moved or attribution.verdict not in ("slower", "faster"):
        return cell
    reason = (
        f"over {attribution.seeds} seeds, as one of {family.cells} cells gives by chance (p = "
        f"{family.chance:.2g} for all of them)"
    )
    return replace(cell, attribution=replace(attribution, verdict="spread", reason=reason))


def _family(client: str, cells: Sequence[CellFinding], metric: Metric) -> Family:
    changes = [changes_pct(cell) for cell in cells]
    blocks = sorted({block for change in changes for block in change})
    means = [statistics.fmean(change[b] for change in changes if b in change) for b in blocks]
    pct = estimate_paired_shift(means)
    bound = max(harmless_pct(cell.axes, bool(cell.attribution and cell.attribution.tcp_alone))
                for cell in cells)  # fmt: skip
    # Clock reads move all seeds of a cell one way, by next to nothing: that is no agreement.
    chance = p_of_signs(
        [{b: pct for b, pct in change.items() if abs(pct) > bound} for change in changes]
    )
    verdict: Attributed = "spread"
    if not any(any(change.values()) for change in changes):
        verdict = "no effect"
    elif len(blocks) < LEAST_SEEDS:
        verdict = "inconclusive"
    elif pct.interval is not None and not pct.interval.holds(0.0) and abs(pct.value) > bound:
        verdict = "slower" if (pct.value > 0) != metric.more else "faster"
    return Family(client, verdict, len(cells), len(blocks), pct, chance)


def changes_pct(cell: CellFinding) -> dict[Block, float]:
    """Return by how many percent each of a cell's loads took longer, by seed and repetition."""
    return {
        (pair.seed, pair.repetition): pair.difference_ms / pair.base_ms * 100.0
        for pair in cell.trials
        if pair.base_ms > 0
    }
