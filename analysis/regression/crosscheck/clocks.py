"""The same cells in virtual time and in real time, side by side: compared, never pooled.

What real time adds to a page load is bounded by what was measured: computing by the browser's own
account, the link by its calibration and lateness, timers by the kernel's slack (PR_SET_TIMERSLACK
in prctl(2)).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from analysis.records.cells import Axes, Cell
from analysis.records.results import Identity
from analysis.regression.crosscheck.pairs import Pairing
from analysis.regression.crosscheck.savings import Saving, savings_of
from analysis.stats.estimates import Sample, describe_sample
from testbed.model import Record

TOLERANCE_PCT = 1.0
TIMER_SLACK_MS = 0.05
LINK_PROPERTIES = {"rtt": 1.0, "down_rate": -1.0, "up_rate": -1.0}
"""What of the link decides a load time, and whether more of it makes loads longer (1) or not."""

Verdict = Literal["agrees", "explained", "differs", "unclear", "no number"]


@dataclass(frozen=True, slots=True)
class Side:
    """One cell on one kernel: page load times in ms, and what was measured beside them.

    ``main_ms`` is how long the browser's main thread was busy until the load event, ``all_ms`` the
    CPU time of all its processes, ``unwaited_ms`` how long no request was under way; all medians,
    and ``None`` where a client does not tell.  Lateness is the link's over all loads, in ms.
    """

    plt_ms: Sample | None
    planned: int
    status: str
    main_ms: float | None
    all_ms: float | None
    unwaited_ms: float | None
    requests: int
    link: dict[str, float]
    worst_lateness_ms: float | None
    mean_lateness_ms: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One cell on both kernels; times are the ``real`` kernel's minus the ``base``'s, in ms."""

    axes: Axes
    base: Side
    real: Side

    @property
    def difference_ms(self) -> tuple[float, float, float] | None:
        """Least, likely and greatest difference of the medians, by their own intervals."""
        if self.base.plt_ms is None or self.real.plt_ms is None:
            return None
        base, real = self.base.plt_ms.median, self.real.plt_ms.median
        likely = real.value - base.value
        low = (real.interval.low if real.interval else real.value) - (
            base.interval.high if base.interval else base.value
        )
        high = (real.interval.high if real.interval else real.value) - (
            base.interval.low if base.interval else base.value
        )
        return low, likely, high

    @property
    def difference_pct(self) -> float | None:
        """The likely difference in percent of the base's load time."""
        if self.difference_ms is None or self.base.plt_ms is None:
            return None
        return self.difference_ms[1] / self.base.plt_ms.median.value * 100.0

    @property
    def cpu_ms(self) -> float | None:
        """How much computing can account for: how much longer the browser's main thread was busy.

        ``None`` where the client does not tell.
        """
        if self.real.main_ms is None:
            return None
        return self.real.main_ms - (self.base.main_ms or 0.0)

    @property
    def link_ms(self) -> float:
        """By how much the real link's calibrated slowness can prolong a load, at the most."""
        if self.base.plt_ms is None:
            return 0.0
        slowness = [
            sign * (self.real.link[name] / self.base.link[name] - 1.0)
            for name, sign in LINK_PROPERTIES.items()
            if self.base.link.get(name) and self.real.link.get(name)
        ]
        return max(0.0, *slowness, 0.0) * self.base.plt_ms.median.value

    @property
    def slack_ms(self) -> float:
        """What timers can add at the most, if each request waited for one."""
        return self.real.requests * TIMER_SLACK_MS

    @property
    def verdict(self) -> Verdict:
        """Whether the kernels agree within the tolerance, or computing accounts for the rest."""
        if self.difference_ms is None or self.base.plt_ms is None:
            return "no number"
        low, _, high = self.difference_ms
        tolerance = self.base.plt_ms.median.value * TOLERANCE_PCT / 100.0
        most = tolerance + (self.cpu_ms or 0.0)
        if -tolerance <= low and high <= tolerance:
            return "agrees"
        if low > most or high < -tolerance:
            return "differs"
        return "explained" if self.cpu_ms and -tolerance <= low and high <= most else "unclear"


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """All cells of two results folders; ``axes`` are those on which the cells differ."""

    base: Identity
    real: Identity
    comparisons: tuple[Comparison, ...]
    savings: tuple[Saving, ...]
    axes: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have which verdict."""
        found = [one.verdict for one in self.comparisons]
        return {verdict: found.count(verdict) for verdict in dict.fromkeys(found)}


def cross_check(pairing: Pairing) -> CrossCheck:
    """Compare the cells of ``pairing``, of which one kernel or both ran in real time."""
    return CrossCheck(
        pairing.base.identity,
        pairing.other.identity,
        tuple(Comparison(base.axes, side_of(base), side_of(real)) for base, real in pairing.cells),
        savings_of(pairing.cells),
        pairing.axes,
        pairing.notes,
    )


def side_of(cell: Cell) -> Side:
    """What one kernel measured of a cell; only loads that count are looked at."""
    records = cell.proven
    measured: dict[str, list[float]] = {}
    for record in records:
        for measurement in record.lab.measurements if record.lab is not None else ():
            measured.setdefault(measurement.name, []).append(measurement.measured)
    lateness = [r.machine["worst_lateness_ms"] for r in records if "worst_lateness_ms" in r.machine]
    mean = [r.machine["mean_lateness_ms"] for r in records if "mean_lateness_ms" in r.machine]
    return Side(
        plt_ms=describe_sample(cell.plt_by_seed.values()),
        planned=cell.planned,
        status=cell.status,
        main_ms=_median(records, lambda r: _browser_ms(r, "task_s")),
        all_ms=_median(records, lambda r: _browser_ms(r, "load_cpu_s")),
        unwaited_ms=_median(records, unwaited_ms),
        requests=max((len(r.load.requests) for r in records if r.load is not None), default=0),
        link={name: statistics.median(values) for name, values in measured.items()},
        worst_lateness_ms=max(lateness, default=None),
        mean_lateness_ms=statistics.fmean(mean) if mean else None,
    )


def unwaited_ms(record: Record) -> float | None:
    """How long of a load no request was under way: then only computing can have taken time."""
    if record.load is None:
        return None
    waited, until = 0.0, 0.0
    for start, end in sorted((r.start_ms, r.end_ms) for r in record.load.requests):
        start, end = max(start, until), min(end, record.load.plt_ms)
        waited += max(0.0, end - start)
        until = max(until, end)
    return record.load.plt_ms - waited


def _browser_ms(record: Record, name: str) -> float | None:
    if record.load is None or name not in record.load.browser:
        return None
    return record.load.browser[name] * 1000.0


def _median(records: Iterable[Record], ask: Callable[[Record], float | None]) -> float | None:
    values = [value for value in map(ask, records) if value is not None]
    return statistics.median(values) if values else None
