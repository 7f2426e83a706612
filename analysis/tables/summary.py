"""``summary.json``: every number exactly, with its proof, the same text for equal results.

No clock, no cost and no path of the machine goes in, and no order of arrival.  Of many trials it
has the cells alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Annotated, Any, TypedDict

from analysis.records.cells import Axes, Cell, Spread, experiment_of
from analysis.records.metric import PLT, Metric
from analysis.records.replay_coverage import ReplayCoverage, replay_facts
from analysis.records.results import Identity, Results, judge
from analysis.stats.estimates import SampleStatistics
from analysis.tables.kind import tables_of
from analysis.tables.rows import table_rows
from analysis.tables.table import ResultTable
from testbed.model import Experiment, LabReading, Outcome, PageLoad, Proof, Record, Replay
from testbed.results.environment import Environment
from testbed.results.lazy import whole

SCHEMA_VERSION = 2
MOST_TRIALS = 10_000
"""Of more the summary has cells alone: it would be half as large as the records themselves."""
CAPTURE_SUFFIXES = frozenset({".pcap", ".pcapng"})
ASKED = ("name", "title", "reference", "repetitions", "until_ci_pct", "warmup_blocks", "seed",
         "kernel", "kernel_version")  # fmt: skip
_Fields = dict[str, Any]
"""Of the class that it is annotated with, by name."""


class MeasurementSummary(TypedDict):
    """A property of the lab as measured before the load."""

    name: str
    """The property."""
    unit: str
    """The unit of `measured` and `theory`."""
    measured: float | None
    """The measured value."""
    theory: float | None
    """The value that the closed form gives."""
    error_pct: float | None
    """The relative error, with its sign."""
    tolerance_pct: float | None
    """The largest relative error, where no absolute one decides."""
    within: bool
    """Whether the error is within its tolerance."""


class TrialSummary(TypedDict):
    """One trial: its last `ok` attempt, else its last."""

    trial_id: str
    """The trial's name, also that of its folder in `trials/`."""
    seed: int
    """The seed."""
    repetition: int
    """The repetition, from 0."""
    position: int | None
    """The place in its block, from 0; null in virtual time."""
    outcome: Outcome
    """The outcome that counts: a record that claims `ok` without its proof is `unproven` here."""
    plt_ms: float | None
    """The page load time; null unless the outcome is `ok`."""
    requests: int | None
    """How many requests the client made."""
    after_load: int | None
    """How many of them began after the load event."""
    missing: list[str] | None
    """URLs that were recorded before the load event and not requested."""
    extra: list[str] | None
    """URLs that were requested and not recorded."""
    failed: list[str] | None
    """URLs without a whole response, or with an HTTP error that was not recorded."""
    pinned: bool | None
    """Whether scripts had pinned clocks and random numbers."""
    replay: Annotated[_Fields | None, Replay]
    """How the server answered."""
    proof: Annotated[_Fields | None, Proof]
    """What the packet capture proves; `proven` is added: whether it has no problem."""
    calibration: list[MeasurementSummary] | None
    """The measurements of the lab before the load."""
    knobs: dict[str, str] | None
    """Settings of the lab as read back from the kernel, by name (see `knobs` of
    [LabReading](#labreading))."""
    captures_sha256: dict[str, str]
    """The SHA-256 of each packet capture, by file name."""


class CellSummary(TypedDict):
    """All trials of one condition."""

    condition: Axes
    """The condition's knobs, by name ([knobs](knobs.md))."""
    status: str
    """`proven` (every trial is), how many count and what became of the others, with `median not
    safe` if it could lie outside its interval had they counted, or what happened."""
    planned: int
    """How many trials were planned."""
    outcomes: dict[str, int]
    """How many trials ended how, by outcome; `not run` for those without a record."""
    plt_ms: Annotated[_Fields | None, Spread]
    """The page load times of the proven trials; null without any."""
    sample_ms: Annotated[_Fields | None, SampleStatistics]
    """Statistics of the same page load times."""
    coverage: Annotated[_Fields, ReplayCoverage]
    """How the server answered, over all trials."""
    trials: list[Annotated[_Fields, TrialSummary]]
    """The trials in order of their seeds; empty where the results have more than 10,000 in all:
    `records.jsonl` has them."""


class Summary(TypedDict):
    """All numbers of a results folder: the same text for equal results."""

    schema: int
    """The schema of this document."""
    experiment: Annotated[_Fields, Experiment]
    """What was asked, without its conditions and what decides no number."""
    identity: Annotated[_Fields, Identity, Environment]
    """What all counted records share, with the environment's parts and pages, but not its facts."""
    counts: dict[str, int]
    """How many trials ended how, by outcome."""
    warm_ups: int
    """How many trials were left out because they only warmed the machine up."""
    table: list[dict[str, Any]]
    """The rows of [table.csv](#tablecsv), by column, not rounded."""
    cells: list[Annotated[_Fields, CellSummary]]
    """Every condition, in the order asked."""


def summarise(results: Results, table: ResultTable) -> Summary:
    """Return the summary as JSON-ready values: identity, table, and every trial's facts."""
    experiment = experiment_of(results.manifest)
    with_trials = len(results.records) <= MOST_TRIALS
    environment = results.manifest.get("environment", {})
    return {
        "schema": SCHEMA_VERSION,
        "experiment": {name: experiment.get(name) for name in ASKED},
        # What the environment id is the digest of; never the machine's own facts.
        "identity": asdict(results.identity) | {
            name: environment.get(name, {}) for name in ("parts", "pages")
        },
        "counts": _counts(table.cells), "warm_ups": results.warm_ups, "table": table_rows(table),
        "cells": [_cell(cell, with_trials) for cell in table.cells],
    }  # fmt: skip


def render_summary(summary: Mapping[str, Any]) -> str:
    """Return canonical JSON text of ``summary``, one trailing newline.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(summary, sort_keys=True, indent=1, allow_nan=False) + "\n"


def captures_of(record: Record) -> dict[str, str]:
    """Return the SHA-256 of each packet capture of ``record``, by file name."""
    return {
        name: sha256
        for name, sha256 in sorted(record.artefacts.items())
        if CAPTURE_SUFFIXES & set(PurePosixPath(name).suffixes)
    }


def _counts(cells: tuple[Cell, ...]) -> dict[str, int]:
    return dict(sum((Counter(cell.outcomes) for cell in cells), Counter()))


def _cell(cell: Cell, with_trials: bool) -> _Fields:
    summary: CellSummary = {
        "condition": cell.axes, "status": cell.status, "planned": cell.planned,
        "outcomes": cell.outcomes, "plt_ms": _fields(cell.by(PLT).spread),
        "sample_ms": _fields(cell.by(PLT).sample), "coverage": asdict(cell.coverage),
        "trials": [_trial(record) for record in cell.records if with_trials],
    }  # fmt: skip
    return {**summary, **tables_of(cell.kind).of_cell(cell)}


def spreads_of(cell: Cell, metrics: Iterable[Metric]) -> dict[str, _Fields]:
    """Return the spread of each of ``metrics`` that the cell has, by the metric's name."""
    spreads = {metric.name: cell.by(metric).spread for metric in metrics}
    return {name: asdict(spread) for name, spread in spreads.items() if spread}


def _fields(statistics: Spread | SampleStatistics | None) -> _Fields | None:
    return asdict(statistics) if statistics else None


def _trial(record: Record) -> _Fields:
    outcome, _ = judge(record)
    record = whole(record)
    load, proof = record.measured_as(PageLoad), record.proof
    summary: TrialSummary = {
        "trial_id": record.trial_id,
        "seed": record.trial.seed,
        "repetition": record.trial.repetition,
        "position": record.position,
        "outcome": outcome,
        # What an unproven trial measured stays in records.jsonl: here it would pass for a result.
        "plt_ms": load.plt_ms if load is not None and outcome == "ok" else None,
        "requests": len(load.requests) if load is not None else None,
        "after_load": len(load.after_load) if load is not None else None,
        "missing": sorted(load.missing) if load is not None else None,
        "extra": sorted(load.extra) if load is not None else None,
        "failed": sorted(load.failed) if load is not None else None,
        "pinned": load.pinned if load is not None else None,
        "replay": replay_facts(record.replay),
        "proof": None if proof is None else {**asdict(proof), "proven": proof.proven},
        "calibration": _calibration(record.lab),
        "knobs": record.lab.knobs if record.lab is not None else None,
        "captures_sha256": captures_of(record),
    }
    return {**summary, **(tables_of(record.trial.kind).of_trial(record) if outcome == "ok" else {})}


def _calibration(lab: LabReading | None) -> list[MeasurementSummary] | None:
    if lab is None:
        return None
    return [
        {"name": m.name, "unit": m.unit, "measured": finite(m.measured), "theory": finite(m.theory),
         "error_pct": finite(m.error_pct), "tolerance_pct": finite(m.tolerance_pct),
         "within": m.within}
        for m in sorted(lab.measurements, key=lambda m: (m.name, m.unit))
    ]  # fmt: skip


def finite(value: float) -> float | None:
    """Return ``value``, or ``None`` where JSON has no number for it."""
    return value if math.isfinite(value) else None
