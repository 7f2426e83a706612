"""Nights for the tests: results folders that differ in time, numbers, kernel or environment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from testbed.model import Record
from testbed.results.environment import Environment
from tests.analysis.sample import (
    ENVIRONMENT,
    conditions,
    experiment,
    record,
    with_milestones,
    write_results,
)
from tests.measured import load_of

SWEEP = conditions(("amazon", "wsj"), (20.0, 100.0))


def night(
    folder: Path, day: int, factor: float = 1.0, environment: Environment = ENVIRONMENT,
    version: str = "7.3", failed: int | None = None, seen: bool = False,
) -> Path:  # fmt: skip
    """The sweep of one night, all loads ``factor`` as long; load ``failed`` was not proven.

    With ``seen`` the browser gave what a visitor sees.
    """
    records = []
    for place, condition in enumerate(SWEEP):
        base = record(condition)
        loaded = record(condition, plt_ms=load_of(base).plt_ms * factor)
        loaded = _on(with_milestones(loaded) if seen else loaded, environment, version)
        records.append(replace(loaded, outcome="unproven") if place == failed else loaded)
    plan = experiment(1, name="small", title="A <b>small</b> sweep", conditions=SWEEP,
                      reference=None, kernel_version=version)  # fmt: skip
    write_results(folder, records, plan, environment)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["created_utc"] = f"2026-11-{day:02d}T02:17:00+00:00"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def with_part(name: str, value: str) -> Environment:
    """The sample's environment with another value of one part."""
    return replace(ENVIRONMENT, parts={**ENVIRONMENT.parts, name: value})


def _on(loaded: Record, environment: Environment, version: str) -> Record:
    trial = replace(loaded.trial, kernel_version=version)
    return replace(loaded, trial=trial, trial_id=trial.id, environment=environment.id)
