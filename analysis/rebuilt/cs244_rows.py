"""Rows of the CS244'15 reproduction: both arms of one condition, averaged as it averages."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.cells import Axes
from analysis.tables.table import Pair
from analysis.words import axis_value, axis_word

REUSE = "requests_per_connection"


@dataclass(frozen=True, slots=True)
class Row:
    """Mean load times in s over the runs that both arms have; ``None`` where there are none.

    ``connections`` is the median of all proven loads, ``most`` the most requests on one of them.
    """

    axes: Axes
    part: str
    runs: int
    off_s: float | None
    on_s: float | None
    connections: float | None
    most: int | None

    @property
    def improvement_pct(self) -> float | None:
        """How much sooner the mean load ends with Fast Open, in percent of that without."""
        if not self.off_s or self.on_s is None:
            return None
        return (self.off_s - self.on_s) / self.off_s * 100.0

    @property
    def name(self) -> str:
        """Page, RTT, and whatever else this reproduction did not sweep."""
        known = (axis_value(n, self.axes.get(n)) for n in ("page", "rtt_ms"))
        return ", ".join(part for part in (*known, self.part) if part)

    @property
    def resources(self) -> str:
        """How many resources a connection serves, as a word."""
        return "unlimited" if self.axes[REUSE] is None else str(self.axes[REUSE])


def average_pair(pair: Pair, others: Sequence[str]) -> Row:
    """The row of ``pair``; ``others`` are the swept knobs that the reproduction does not know."""
    part = ", ".join(f"{axis_word(n)} {axis_value(n, pair.axes.get(n))}" for n in others)
    proven = [record for _, cell in pair.arms if cell for record in cell.proven]
    opened = [record.proof.connections for record in proven if record.proof]
    counts = [record.replay.most_per_connection for record in proven if record.replay]
    means: list[float | None] = []
    for _, cell in pair.arms:
        times = cell.plt_by_seed if cell else {}
        # An arm alone keeps its own mean, but nothing is said of an improvement then.
        chosen = [times[run] for run in sorted(pair.seeds or times)]
        means.append(statistics.fmean(chosen) / 1000.0 if chosen else None)
    return Row(
        axes=pair.axes,
        part=part,
        runs=len(pair.seeds),
        off_s=means[0],
        on_s=means[1],
        connections=statistics.median(opened) if opened else None,
        most=max(counts, default=None),
    )
