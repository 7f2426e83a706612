"""``summary.json``: every number exactly, with its proof, the same text for equal results.

No clock, no cost and no path of the machine goes in, and no order of arrival.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from analysis.records.cells import Cell, experiment_of
from analysis.records.coverage import replay_facts
from analysis.records.results import Results, judge
from analysis.tables.rows import table_rows
from analysis.tables.table import Table
from testbed.model import LabReading, Proof, Record

SCHEMA_VERSION = 2
CAPTURE_SUFFIXES = frozenset({".pcap", ".pcapng"})
ASKED = (
    "name", "title", "reference", "repetitions", "until_ci_pct", "warmup_blocks", "seed", "kernel",
    "kernel_version",
)  # fmt: skip


def summarise(results: Results, table: Table) -> dict[str, Any]:
    """Return the summary as JSON-ready values: identity, table, and every trial's facts."""
    experiment = experiment_of(results.manifest)
    return {
        "schema": SCHEMA_VERSION,
        "experiment": {name: experiment.get(name) for name in ASKED},
        "identity": {
            **asdict(results.identity),
            **_identity_facts(results.manifest),
        },
        "counts": _counts(table.cells),
        "warm_ups": results.warm_ups,
        "table": table_rows(table),
        "cells": [_cell(cell) for cell in table.cells],
    }


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


def _identity_facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the environment id is the digest of; never the machine's own facts."""
    environment = manifest.get("environment")
    known = environment if isinstance(environment, Mapping) else {}
    return {name: known.get(name, {}) for name in ("parts", "pages")}


def _counts(cells: tuple[Cell, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for cell in cells:
        for outcome, number in cell.outcomes.items():
            counts[outcome] = counts.get(outcome, 0) + number
    return counts


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "condition": cell.axes,
        "status": cell.status,
        "planned": cell.planned,
        "outcomes": cell.outcomes,
        "plt_ms": asdict(cell.plt_ms) if cell.plt_ms else None,
        "sample_ms": asdict(cell.sample) if cell.sample else None,
        "coverage": asdict(cell.coverage),
        "trials": [_trial(record) for record in cell.records],
    }


def _trial(record: Record) -> dict[str, Any]:
    outcome, _ = judge(record)
    load = record.load
    return {
        "trial_id": record.trial_id,
        "seed": record.trial.seed,
        "repetition": record.trial.repetition,
        "position": record.position,
        "outcome": outcome,
        # What an unproven trial measured stays in records.jsonl: here it would pass for a result.
        "plt_ms": load.plt_ms if load is not None and outcome == "ok" else None,
        "requests": len(load.requests) if load is not None else None,
        "missing": sorted(load.missing) if load is not None else None,
        "extra": sorted(load.extra) if load is not None else None,
        "failed": sorted(load.failed) if load is not None else None,
        "pinned": load.pinned if load is not None else None,
        "replay": replay_facts(record.replay),
        "proof": _proof(record.proof),
        "calibration": _calibration(record.lab),
        "knobs": record.lab.knobs if record.lab is not None else None,
        "captures_sha256": captures_of(record),
    }


def _proof(proof: Proof | None) -> dict[str, Any] | None:
    return None if proof is None else {**asdict(proof), "proven": proof.proven}


def _calibration(lab: LabReading | None) -> list[dict[str, Any]] | None:
    if lab is None:
        return None
    return [
        {
            "name": m.name,
            "unit": m.unit,
            "measured": finite(m.measured),
            "theory": finite(m.theory),
            "error_pct": finite(m.error_pct),
            "tolerance_pct": finite(m.tolerance_pct),
            "within": m.within,
        }
        for m in sorted(lab.measurements, key=lambda m: (m.name, m.unit))
    ]


def finite(value: float) -> float | None:
    """Return ``value``, or ``None`` where JSON has no number for it."""
    return value if math.isfinite(value) else None
