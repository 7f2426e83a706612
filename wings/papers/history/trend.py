"""Trends: each cell's numbers over the runs, one line for each kernel, never mixed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.records.cells import Axes
from analysis.records.metric import PLT, Metric
from wings.papers.history.runs import KeptRun, read_runs


@dataclass(frozen=True, slots=True)
class Point:
    """What one run said of a cell; without a number ``median_ms`` is ``None``.

    Numbers are in the metric's unit.  ``later_pct`` is how much later its loads end than the
    baseline's; that and the verdict are by load time, and absent by another metric.
    """

    run: KeptRun
    n: int
    median_ms: float | None
    low_ms: float | None
    high_ms: float | None
    outcomes: Mapping[str, int]
    verdict: str | None
    later_pct: float | None = None
    metric: Metric = PLT


@dataclass(frozen=True, slots=True)
class Line:
    """A cell over all runs of its lane; ``points`` has ``None`` where a run had no such cell."""

    axes: Axes
    points: tuple[Point | None, ...]

    @property
    def last(self) -> Point | None:
        """The newest run's point, if that run had this cell."""
        return self.points[-1]

    @property
    def metric(self) -> Metric:
        """What its numbers are of."""
        return next((point.metric for point in self.points if point is not None), PLT)

    @property
    def moved_pct(self) -> float | None:
        """From the last number but one to the last, in percent; ``None`` without two."""
        numbers = [p.median_ms for p in self.points if p is not None and p.median_ms is not None]
        return (numbers[-1] / numbers[-2] - 1.0) * 100.0 if len(numbers) > 1 else None


@dataclass(frozen=True, slots=True)
class Break:
    """Another environment than in the run before: which run it came with, and what differs."""

    place: int
    run: KeptRun
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrendLane:
    """One experiment on one version of one kernel: its runs, the oldest first, and its cells."""

    runs: tuple[KeptRun, ...]
    lines: tuple[Line, ...]
    axes: tuple[str, ...]
    changes: tuple[Break, ...]

    @property
    def newest(self) -> KeptRun:
        """The run that ended it."""
        return self.runs[-1]


def read_lanes(
    connection: sqlite3.Connection, last: int, metric: Metric = PLT
) -> tuple[TrendLane, ...]:
    """Return every lane with its ``last`` runs, the most recent lane first.

    Lanes without values of ``metric`` are left out, unless it is the load time.
    """
    runs_by_lane: dict[tuple[str, str, str], list[KeptRun]] = {}
    for run in read_runs(connection):
        key = (run.experiment, run.kernel, run.kernel_version)
        runs_by_lane.setdefault(key, []).append(run)
    lanes = [_read_lane(connection, tuple(runs[-last:]), metric) for runs in runs_by_lane.values()]
    if metric != PLT:
        lanes = [lane for lane in lanes if any(point is not None and point.median_ms is not None
                                               for line in lane.lines
                                               for point in line.points)]  # fmt: skip
    return tuple(sorted(lanes, key=lambda lane: lane.newest.created_utc, reverse=True))


def _read_lane(
    connection: sqlite3.Connection, runs: tuple[KeptRun, ...], metric: Metric
) -> TrendLane:
    axes: dict[str, Axes] = {}
    points: dict[str, list[Point | None]] = {}
    for place, run in enumerate(runs):
        for row in _read_cells(connection, run, metric):
            # The newest run's words for a cell: it knows every knob.
            axes[row["name"]] = json.loads(row["axes"])
            points.setdefault(row["name"], [None] * len(runs))[place] = _point(run, row, metric)
    lines = tuple(Line(axes[name], tuple(points[name])) for name in points)
    return TrendLane(runs, lines, _varying(axes.values()), tuple(_changes(connection, runs)))


def _read_cells(
    connection: sqlite3.Connection, run: KeptRun, metric: Metric
) -> Iterable[sqlite3.Row]:
    if metric == PLT:
        return connection.execute("SELECT * FROM cell WHERE run = ? ORDER BY place", (run.id,))
    return connection.execute(
        """SELECT cell.name, axes, outcomes, coalesce(milestone.n, 0) AS n, median AS median_ms,
             low AS low_ms, high AS high_ms, NULL AS verdict, NULL AS later_pct
           FROM cell LEFT JOIN milestone
             ON milestone.run = cell.run AND milestone.name = cell.name AND metric = ?
           WHERE cell.run = ? ORDER BY place""",
        (metric.name, run.id),
    )


def _point(run: KeptRun, row: sqlite3.Row, metric: Metric) -> Point:
    numbers = (row["n"], row["median_ms"], row["low_ms"], row["high_ms"])
    outcomes = json.loads(row["outcomes"])
    return Point(run, *numbers, outcomes, row["verdict"], row["later_pct"], metric)


def _varying(cells: Iterable[Axes]) -> tuple[str, ...]:
    everything = tuple(cells)
    names = dict.fromkeys(("page", *(name for axes in everything for name in axes)))
    # A knob that older cells do not know had its default there: it does not tell cells apart.
    return tuple(name for name in names if name == "page"
                 or len({axes[name] for axes in everything if name in axes}) > 1)  # fmt: skip


def _changes(connection: sqlite3.Connection, runs: Sequence[KeptRun]) -> Iterable[Break]:
    for place in range(1, len(runs)):
        before, after = runs[place - 1].environment, runs[place].environment
        if before != after:
            old, new = _parts(connection, before), _parts(connection, after)
            names = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
            yield Break(place, runs[place], tuple(_describe(n, old, new) for n in names))


def _describe(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Name what differs with both values; digests without, which no reader can compare."""
    before, after = old.get(name, "absent"), new.get(name, "absent")
    if max(len(before), len(after)) > 60:
        return name
    return f"{name}: {before} → {after}"


def _parts(connection: sqlite3.Connection, environment: str) -> dict[str, Any]:
    query = "SELECT parts FROM environment WHERE id = ?"
    parts: dict[str, Any] = json.loads(connection.execute(query, (environment,)).fetchone()[0])
    return parts
