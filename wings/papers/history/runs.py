"""Runs in the history: each results folder once, with its cells and the verdict on them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.records.cells import (
    Cell,
    cells_of,
    experiment_of,
    facts_of,
    flatten,
    further_metrics,
    key_of,
)
from analysis.records.kind import all_metrics
from analysis.records.results import Results, read_results
from analysis.verdicts.compare.comparison import EVERYTHING, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from testbed.base.errors import ConfigurationError
from testbed.model import Condition, LinkSpec, TcpSpec, canonical, digest
from testbed.results.lazy import whole
from testbed.results.records import plain_record
from wings.papers.history.database import changing, open_history

ALWAYS_NAMED = ("page", "client", "rtt_ms", "tfo")
DEFAULTS = flatten(Condition("", "", LinkSpec(), TcpSpec()))
UNKNOWN = "unknown"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run as the history keeps it.

    ``baseline`` is the environment id of the baseline that it was compared with.
    """

    id: int
    created_utc: str
    experiment: str
    title: str
    git_revision: str
    environment: str
    kernel: str
    kernel_version: str
    baseline: str | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The verdict on the cell with these axes, and how much later its loads end, in percent."""

    axes: dict[str, Any]
    verdict: str
    later_pct: float | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The environment of the baseline, the verdict on the whole, and that on each cell.

    ``overall`` of REFUSED says that the two cannot be compared, and ``why`` then says why.
    """

    baseline: str
    overall: str
    cells: tuple[CellVerdict, ...] = ()
    why: str | None = None

    def of(self, axes: Mapping[str, Any]) -> CellVerdict | None:
        """The verdict on the cell with these axes, if it was compared."""
        key = key_of(dict(axes))
        return next((cell for cell in self.cells if key_of(cell.axes) == key), None)


def keep_run(history: Path, results: Path, baseline: Path | None) -> str:
    """Add ``results`` to ``history`` with the verdict against ``baseline``; return a sentence.

    Raises:
        ConfigurationError: the results must not be pooled, or hold nothing; a newer history.
        StorageError: something cannot be read or written.
    """
    run = read_results(results)
    verdicts = find_verdicts(run, baseline) if baseline is not None else None
    with open_history(history, create=True) as connection:
        change = add_run(connection, run, verdicts)
    comparison = "no baseline to hold it against"
    if verdicts is not None:
        why = f" ({verdicts.why})" if verdicts.why else ""
        comparison = f"{verdicts.overall} against the baseline{why}"
    return f"{results}: {change}; {comparison}"


def add_run(connection: sqlite3.Connection, results: Results, verdicts: Verdicts | None) -> str:
    """Keep ``results``; return ``added``, ``there already`` or ``brought up to date``.

    Experiment, trials, environment and time identify a results folder: after ``--resume`` its new
    content replaces the old.

    Raises:
        ConfigurationError: no trial has ended.
    """
    identity = results.identity
    if not results.records or identity.environment is None:
        raise ConfigurationError(
            [f"{results.folder} holds no trial that has ended; there is nothing to remember of it"]
        )
    row = _run_row(results) | {"identity": _identity(results),
                               "content": _content(results, verdicts),
                               "baseline": verdicts and verdicts.baseline,
                               "verdict": verdicts and verdicts.overall}  # fmt: skip
    with changing(connection):
        query = "SELECT id, content FROM run WHERE identity = ?"
        before = connection.execute(query, (row["identity"],)).fetchone()
        if before is not None and before["content"] == row["content"]:
            return "there already"
        if before is not None:
            connection.execute("DELETE FROM run WHERE id = ?", (before["id"],))
        environment = results.manifest.get("environment", {})
        pages = environment.get("pages", {})
        parts = environment.get("parts", {}) | {f"page {name}": pages[name] for name in pages}
        connection.execute("INSERT OR IGNORE INTO environment VALUES (?, ?)",
                           (identity.environment, canonical(parts)))  # fmt: skip
        run = _insert(connection, "run", row)
        for place, cell in enumerate(cells_of(results)):
            verdict = verdicts.of(cell.axes) if verdicts else None
            _insert(connection, "cell", _cell_row(run, place, cell, verdict))
            for row in _milestone_rows(run, cell):
                _insert(connection, "milestone", row)
    return "added" if before is None else "brought up to date"


def read_runs(connection: sqlite3.Connection) -> tuple[KeptRun, ...]:
    """Every run, the oldest first."""
    columns = ", ".join(KeptRun.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM run ORDER BY created_utc, id")  # noqa: S608 - our own names
    return tuple(KeptRun(**dict(row)) for row in rows)


def name_of(axes: Mapping[str, Any]) -> str:
    """Return the name that a cell has in every run: its axes that are not the default.

    So a knob that comes later leaves the names of older cells as they were.
    """
    named = {name: value for name, value in axes.items() if name in ALWAYS_NAMED
             or name not in DEFAULTS or value != DEFAULTS[name]}  # fmt: skip
    return canonical({name: _plain(value) for name, value in named.items()})


def find_verdicts(results: Results, baseline: Path) -> Verdicts:
    """Compare ``results`` with ``baseline``, also across environments.

    Runs on different kernels, or versions of one, are not compared: those are different lanes.

    Raises:
        ConfigurationError, StorageError: ``baseline`` cannot be read.
    """
    base = read_results(baseline)
    theirs, ours = base.identity, results.identity
    name = theirs.environment or "unknown"
    if (theirs.kernel, theirs.kernel_version) != (ours.kernel, ours.kernel_version):
        return Verdicts(
            name,
            REFUSED,
            why=f"the baseline is of the {theirs.kernel} kernel {theirs.kernel_version}, "
            f"the run of the {ours.kernel} kernel {ours.kernel_version}",
        )
    try:
        comparison = compare_results(baseline, results.folder, CompareOptions(across=EVERYTHING))
    except ConfigurationError as error:
        return Verdicts(name, REFUSED, why="; ".join(error.problems))
    cells = tuple(CellVerdict(dict(cell.axes), comparison.counted(cell),
                              cell.effect.pct if cell.effect else None)
                  for cell in comparison.cells)  # fmt: skip
    return Verdicts(name, comparison.verdict, cells)


def _content(results: Results, verdicts: Verdicts | None) -> str:
    """What is kept of results; with the metrics, of which an older history has fewer."""
    records = [plain_record(whole(record)) for record in results.records]
    return digest(
        [records, verdicts and asdict(verdicts), [metric.name for metric in all_metrics()]]
    )


def _identity(results: Results) -> str:
    """What identifies a run: unchanged when a folder is resumed, copied, or read by newer code."""
    names = ("created_utc", "trials")
    known = {name: results.manifest.get(name) for name in names}
    experiment = experiment_of(results.manifest).get("name")
    return digest({**known, "experiment": experiment, "environment": results.identity.environment})


def _plain(value: Any) -> Any:
    """Return a number in one form: 20 and 20.0 are equal."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _run_row(results: Results) -> dict[str, Any]:
    experiment, identity = experiment_of(results.manifest), results.identity
    facts = facts_of(results.manifest)
    changed = "+" if facts.get("git_dirty") == "yes" else ""
    name = str(experiment.get("name", UNKNOWN))
    return {"created_utc": str(results.manifest.get("created_utc", UNKNOWN)), "experiment": name,
            "title": str(experiment.get("title") or name),
            "git_revision": f"{facts.get('git_revision', UNKNOWN)}{changed}",
            "environment": identity.environment, "kernel": identity.kernel,
            "kernel_version": identity.kernel_version}  # fmt: skip


def _cell_row(run: int, place: int, cell: Cell, verdict: CellVerdict | None) -> dict[str, Any]:
    plt = cell.spread
    return {"run": run, "name": name_of(cell.axes), "axes": json.dumps(cell.axes), "place": place,
            "n": plt.n if plt else 0, "median_ms": plt.median if plt else None,
            "low_ms": plt.low if plt else None, "high_ms": plt.high if plt else None,
            "outcomes": json.dumps(cell.outcomes), "verdict": verdict.verdict if verdict else None,
            "later_pct": verdict.later_pct if verdict else None}  # fmt: skip


def _milestone_rows(run: int, cell: Cell) -> Iterator[dict[str, Any]]:
    for metric in further_metrics([cell]):
        spread = cell.by(metric).spread
        if spread is not None:
            named = {"run": run, "name": name_of(cell.axes), "metric": metric.name}
            yield named | asdict(spread)


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert ``row``, whose column names are our own; return its row id."""
    marks = ", ".join("?" * len(row))
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608
    return int(connection.execute(statement, tuple(row.values())).lastrowid or 0)
