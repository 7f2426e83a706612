"""Results of older revisions: read with nothing lost, or refused by name."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from analysis.records.cells import cells_of
from analysis.records.results import read_results
from testbed.base.errors import StorageError
from testbed.experiment.plan import plan_trials
from testbed.model import SCHEMA_VERSION, Experiment, Record, Trial, canonical
from testbed.results.environment import Environment
from testbed.results.folder import open_folder
from testbed.results.manifest import load_manifest, make_manifest, read_manifest, write_manifest
from testbed.results.records import parse_record, plain_record, read_records

CHANGED: dict[str, Any] = {"server_think_ms": 50.0, "think_spread_pct": 10.0,
                           "start_spread_ms": 1.5}  # fmt: skip


def record(trial: Trial) -> Record:
    return Record(trial.id, trial, "failed", "e", "no reason")


def without_later_knobs(document: dict[str, Any]) -> dict[str, Any]:
    """A record or a manifest, as plain data, as it was written before there were these knobs."""
    old: dict[str, Any] = json.loads(json.dumps(document))
    conditions = [old["trial"]["condition"]] if "trial" in old else old["experiment"]["conditions"]
    for condition in conditions:
        for name in CHANGED:
            del condition[name]
    return old


def line(document: dict[str, Any]) -> bytes:
    return canonical(document).encode() + b"\n"


def test_ids_are_those_without_later_knobs(trials: tuple[Trial, ...]) -> None:
    assert trials[0].id == "ecdba83a0733af96"


@pytest.mark.parametrize("name", CHANGED)
def test_a_later_knob_that_is_turned_makes_another_trial(
    trials: tuple[Trial, ...], name: str
) -> None:
    condition = replace(trials[0].condition, **{name: CHANGED[name]})
    assert replace(trials[0], condition=condition).id != trials[0].id
    other = replace(trials[0].condition, **{name: CHANGED[name] / 2})
    assert len({replace(trials[0], condition=c).id for c in (condition, other)}) == 2


def test_a_record_without_later_knobs_is_read_as_one_of_today(trials: tuple[Trial, ...]) -> None:
    today = record(trials[0])
    old = without_later_knobs(asdict(today))
    assert parse_record(line(old)) == today
    assert today.schema == SCHEMA_VERSION == 3
    twice = parse_record(line(asdict(parse_record(line(old)))))
    assert twice == today


def test_a_record_of_today_comes_back_with_its_knobs(trials: tuple[Trial, ...]) -> None:
    trial = replace(trials[0], condition=replace(trials[0].condition, **CHANGED))
    assert parse_record(line(plain_record(record(trial)))) == record(trial)


def test_both_may_be_in_one_file(results: Path, trials: tuple[Trial, ...]) -> None:
    old = [line(without_later_knobs(plain_record(record(trial)))) for trial in trials[:2]]
    (results / "records.jsonl").write_bytes(b"".join(old))
    with open_folder(results) as store:
        store.append(record(trials[2]))
    kept = (results / "records.jsonl").read_bytes()
    assert kept.startswith(b"".join(old))  # what is there is never rewritten
    assert read_records(results) == tuple(record(trial) for trial in trials[:3])


def test_a_manifest_without_later_knobs_says_every_knob(
    results: Path, experiment: Experiment, environment: Environment, now: datetime
) -> None:
    today = make_manifest(experiment, environment, now, ())
    write_manifest(results, today)
    path = results / "manifest.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps(without_later_knobs(written)))
    assert read_manifest(results) == written
    assert load_manifest(results) == today


def test_old_results_fill_the_cells_that_they_were_planned_for(
    results: Path, experiment: Experiment, environment: Environment, now: datetime
) -> None:
    trials = plan_trials(experiment)
    write_manifest(results, make_manifest(experiment, environment, now, ()))
    path = results / "manifest.json"
    path.write_text(json.dumps(without_later_knobs(json.loads(path.read_text()))))
    old = [line(without_later_knobs(plain_record(record(trial)))) for trial in trials]
    (results / "records.jsonl").write_bytes(b"".join(old))
    cells = cells_of(read_results(results))
    assert len(cells) == len(experiment.conditions)
    assert [len(cell.records) for cell in cells] == [1] * len(cells)


@pytest.mark.parametrize("schema", [1, 2, 4, None, "3"])
def test_another_schema_is_refused_by_name(
    results: Path, trials: tuple[Trial, ...], schema: object
) -> None:
    document = plain_record(record(trials[0])) | {"schema": schema}
    (results / "records.jsonl").write_bytes(line(document))
    (results / "manifest.json").write_text(json.dumps({"schema": schema}))
    for read, name in ((read_records, r"records\.jsonl:1"), (read_manifest, r"manifest\.json")):
        with pytest.raises(
            StorageError, match=rf"{name}: schema {schema}, but .* reads schema 3; use"
        ):
            read(results)
