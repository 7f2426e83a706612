"""Cells: all trials of one condition, their statistics, and what became of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from analysis.records.kind import leaves_of, metric_for, records_of
from analysis.records.metric import PLT, Metric
from analysis.records.replay_coverage import ReplayCoverage, coverage_of
from analysis.records.results import Results, judge
from analysis.stats.estimates import SampleStatistics, describe_sample, without_intervals
from analysis.words import clean, count
from testbed.base.errors import ConfigurationError
from testbed.experiment.stopping import seeds_differ
from testbed.model import LinkSpec, Record, Spec, stored_kind

Axes = dict[str, Any]
Key = tuple[tuple[str, Any], ...]
Block = tuple[int, int]
"""A seed and a repetition: what one load of each cell has."""
NOT_RUN = "not run"
_OF_LINK = frozenset(each.name for each in fields(LinkSpec)) - {"profile"}


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of ``n`` values, all in the values' own unit."""

    median: float
    """The median."""
    low: float
    """The least value."""
    high: float
    """The greatest value."""
    n: int
    """How many values there are."""


@dataclass(frozen=True)  # no slots: what is asked for at every turn is worked out once
class Cell:
    """One condition: its axes, its records in order of seed, and how many were planned.

    Its numbers are those of ``metric``.
    """

    axes: Axes
    records: tuple[Record, ...]
    planned: int
    metric: Metric = PLT

    @property
    def kind(self) -> str:
        """What its trials do."""
        return stored_kind(self.axes)

    @cached_property
    def proven(self) -> tuple[Record, ...]:
        """The records whose number counts."""
        return tuple(r for r in self.records if judge(r)[0] == "ok")

    @cached_property
    def records_by_seed(self) -> dict[Block, Record]:
        """Its records, whatever became of them, by (seed, repetition)."""
        return {(r.trial.seed, r.trial.repetition): r for r in self.records}

    @cached_property
    def by_seed(self) -> dict[Block, float]:
        """The metric of each proven trial that has it, by (seed, repetition)."""
        return {
            (r.trial.seed, r.trial.repetition): value
            for r in self.proven
            if (value := self.metric.of(r.measured)) is not None
        }

    @cached_property
    def spread(self) -> Spread | None:
        """Spread of the metric over the proven trials; ``None`` when none has it."""
        return spread_of(self.by_seed.values())

    @cached_property
    def deviation_pct(self) -> float | None:
        """Standard deviation of the metric in percent of its mean; of fewer than two, ``None``."""
        times = list(self.by_seed.values())
        mean = statistics.fmean(times) if len(times) > 1 else 0.0
        return statistics.stdev(times) / mean * 100.0 if mean else None

    @cached_property
    def varies(self) -> bool | None:
        """Whether the metric differs between seeds; ``None`` with fewer than two values."""
        if self.spread is None or self.spread.n < 2:
            return None
        return self.spread.high - self.spread.low > self.metric.grain

    @cached_property
    def copied(self) -> bool:
        """Whether there are several proven loads, and none differs from the first in anything."""
        measured = [r.measured for r in self.proven if r.measured is not None]
        first, *others = [PLT.of(each) for each in measured] or [None]
        if first is not None and any(abs((o or 0.0) - first) > PLT.grain for o in others):
            return False  # which is seen at once, and the rest of a load is not
        return seeds_differ(self.kind, measured) is False

    @cached_property
    def sample(self) -> SampleStatistics | None:
        """Statistics of the metric over the proven trials."""
        return self.describe(self.by_seed.values())

    def describe(self, values: Iterable[float]) -> SampleStatistics | None:
        """Return statistics of some of its values; no intervals if nothing varies."""
        sample = describe_sample(values)
        return sample if sample is None or self.varies is not False else without_intervals(sample)

    def by(self, metric: Metric) -> Cell:
        """Return the same cell with the numbers of another metric."""
        return self if metric == self.metric else replace(self, metric=metric)

    @cached_property
    def coverage(self) -> ReplayCoverage:
        """How the server answered, over all trials that came so far."""
        return coverage_of(self.records)

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many trials ended how, ``ok`` first, trials that never ran last."""
        counts: dict[str, int] = {}
        for outcome in sorted((judge(r)[0] for r in self.records), key=lambda o: (o != "ok", o)):
            counts[outcome] = counts.get(outcome, 0) + 1
        if len(self.records) < self.planned:
            counts[NOT_RUN] = self.planned - len(self.records)
        return counts

    @property
    def status(self) -> str:
        """``proven``, how many trials count and what became of the others, or what of all."""
        outcomes = self.outcomes
        if set(outcomes) == {"ok"}:
            return "proven"
        if "ok" in outcomes:
            others = (f"{number} {what}" for what, number in outcomes.items() if what != "ok")
            biased = ", median not safe" if self.is_safe is False else ""
            return f"{outcomes['ok']} of {self.planned} count, {', '.join(others)}{biased}"
        return " + ".join(outcomes) or NOT_RUN

    @property
    def lost(self) -> int:
        """How many trials ended without counting: draws that its numbers leave out."""
        return sum(number for what, number in self.outcomes.items() if what not in ("ok", NOT_RUN))

    @cached_property
    def is_safe(self) -> bool | None:
        """Whether the median stays in its interval whatever the lost draws would have been.

        They may all have been slower than the others, or faster.  ``None``: none was lost, or there
        is no interval.
        """
        interval = self.sample.median.interval if self.sample else None
        if not self.lost or interval is None:
            return None
        medians = (
            statistics.median([*self.by_seed.values(), *[extreme] * self.lost])
            for extreme in (-math.inf, math.inf)
        )
        return all(interval.low <= median <= interval.high for median in medians)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the lab and the wire held against the trials that do not count.

        Only what was measured inside the lab: it is the same in every run, whereas a crash
        report or a time-out holds clocks and paths of the machine.
        """
        problems: dict[str, None] = {}
        for record in self.records:
            outcome, reason = judge(record)
            if outcome == "ok":
                continue
            if record.lab is not None:
                problems.update(dict.fromkeys(record.lab.problems))
            if record.proof is not None:
                problems.update(dict.fromkeys(record.proof.problems))
            elif record.outcome == "ok" and reason is not None:
                problems[reason] = None
        return tuple(problems)


def spread_of(values: Iterable[float]) -> Spread | None:
    """Return the spread of ``values``; ``None`` when there are none."""
    numbers = sorted(values)
    if not numbers:
        return None
    return Spread(statistics.median(numbers), numbers[0], numbers[-1], len(numbers))


def flatten(condition: Spec | Mapping[str, Any]) -> Axes:
    """Return a condition's axes by leaf name (``rtt_ms``, ``tfo``, ...), in declared order.

    Settings are named as in --set: ``sysctl.client.tcp_sack``.
    """
    if isinstance(condition, Mapping):
        return _axes_of_plain(condition)
    return dict(_axes_of(condition))


@lru_cache(maxsize=4096)  # every load of a cell has the same condition
def _axes_of(condition: Spec) -> Axes:
    return _axes_of_plain(asdict(condition))


def _axes_of_plain(condition: Mapping[str, Any]) -> Axes:
    unshown = records_of(stored_kind(condition)).unshown
    return {name: value for name, value in leaves_of(condition).items() if name not in unshown}


def key_of(axes: Axes, without: Sequence[str] = ()) -> Key:
    """Return a hashable name of ``axes``; 20 and 20.0 are the same value."""
    return tuple(sorted((name, value) for name, value in axes.items() if name not in without))


def experiment_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked: the manifest's ``experiment``.

    Raises:
        ConfigurationError: the manifest does not hold it.
    """
    experiment = manifest.get("experiment")
    if not isinstance(experiment, Mapping):
        raise ConfigurationError(
            ["manifest.json holds no `experiment`: the folder was not written by `./run.sh run`"]
        )
    return dict(experiment)


def facts_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the machine and the work tree in ``manifest``."""
    return dict(manifest.get("environment", {}).get("facts", {}))


def cells_of(results: Results, metric: Metric = PLT) -> tuple[Cell, ...]:
    """Group the counted records by condition, planned conditions first and in their order.

    A planned condition without any record is a cell too: it says that it was not run.  The cells'
    numbers are those of ``metric``, or of the default of their kind (see ``metric_for``).

    Raises:
        ConfigurationError: trials of their kind do not have the metric.
    """
    experiment = experiment_of(results.manifest)
    # Blocks may have been added until the intervals were narrow: what began was planned.
    begun = max((record.trial.repetition + 1 for record in results.records), default=0)
    repetitions = max(int(experiment.get("repetitions", 1)), begun)
    axes_by_key: dict[Key, Axes] = {}
    for condition in experiment.get("conditions", ()):
        axes = flatten(condition)
        axes_by_key.setdefault(key_of(axes), axes)
    planned = set(axes_by_key)
    members: dict[Key, list[Record]] = {}
    unplanned: dict[Key, Axes] = {}
    named: dict[Spec, tuple[Axes, Key]] = {}
    for record in results.records:
        condition = record.trial.condition
        if condition not in named:
            axes = flatten(condition)
            named[condition] = axes, key_of(axes)
        axes, key = named[condition]
        members.setdefault(key, []).append(record)
        if key not in planned:
            unplanned.setdefault(key, axes)
    axes_by_key.update(sorted(unplanned.items(), key=_natural))
    once = results.manifest.get("once", ())
    metric = metric_for(stored_kind(next(iter(axes_by_key.values()), {})), metric)
    cells = []
    for key, axes in axes_by_key.items():
        own = members.get(key, ())
        known = sorted(own, key=lambda r: (r.trial.seed, r.trial.repetition, r.trial_id))
        asked = _planned(own, repetitions, once) if key in planned else 0
        cells.append(Cell(axes, tuple(known), max(asked, len(own)), metric))
    return tuple(cells)


def _planned(records: Sequence[Record], repetitions: int, once: Collection[str]) -> int:
    """Return how many loads of a condition were planned: one, if more would have been copies."""
    trial = records[0].trial if records else None
    single = trial is not None and trial.client in once and not trial.condition.draws
    return 1 if single else repetitions


def further_metrics(cells: Sequence[Cell], beside: Metric | None = None) -> tuple[Metric, ...]:
    """Return the metrics of their kind that a proven load of ``cells`` has.

    ``beside`` is left out; without it, the default of the kind.
    """
    if not cells:
        return ()
    own = records_of(cells[0].kind).metrics
    shown = beside or own[0]
    loads = [r.measured for cell in cells for r in cell.proven]
    return tuple(m for m in own if m != shown and any(m.of(load) is not None for load in loads))


def describe_absence(cells: Iterable[Cell]) -> list[str]:
    """Return a sentence for each client whose proven loads lack the cells' metric, or some do."""
    counts: dict[str, list[int]] = {}
    metric = PLT
    for cell in cells:
        if cell.proven:
            metric = cell.metric
            having_and_loads = counts.setdefault(str(cell.axes.get("client")), [0, 0])
            having_and_loads[0] += len(cell.by_seed)
            having_and_loads[1] += len(cell.proven)
    return [
        f"Client {clean(client)} gives no {metric.label} ({metric.name})."
        if not having
        else f"{having} of {count(loads, 'load')} by client {clean(client)} have a {metric.label} "
        f"({metric.name}); in the others {metric.absent}."
        for client, (having, loads) in sorted(counts.items())
        if having < loads
    ]


def varying_axes(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the names of the axes on which the cells differ, in declared order."""
    return find_varying([cell.axes for cell in cells])


def find_varying(places: Sequence[Axes]) -> tuple[str, ...]:
    """Return the names of the axes on which ``places`` differ, in declared order.

    What a profile of the link states goes without saying beside the profile.
    """
    names = dict.fromkeys(name for axes in places for name in axes)
    varying = [n for n in names if len({axes.get(n) for axes in places}) > 1]
    if "profile" in varying:
        profiles = {axes.get("profile") for axes in places}
        varying = [
            n for n in varying
            if n not in _OF_LINK
            or len({(axes.get("profile"), axes.get(n)) for axes in places}) > len(profiles)
        ]  # fmt: skip
    return tuple(varying)


def unusual_axes(cells: Sequence[Cell], defaults: Mapping[str, Any]) -> tuple[str, ...]:
    """Return those of the axes in ``defaults`` in which a cell has another value."""
    return tuple(
        name
        for name, default in defaults.items()
        if any(cell.axes.get(name, default) != default for cell in cells)
    )


def _natural(item: tuple[Key, Axes]) -> list[tuple[bool, float, str]]:
    """Return the sort key of a condition: axis by axis in declared order, numbers as numbers."""
    return [
        (isinstance(value, str), 0.0 if isinstance(value, str) else float(value or 0), str(value))
        for value in item[1].values()
    ]
