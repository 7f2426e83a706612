"""Baselines: what becomes one, what of it is kept, and what speaks against it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from analysis.records.cells import cells_of
from analysis.records.results import read_results
from analysis.verdicts.baseline import Draft, draft_baseline, trim_manifest, trim_record
from testbed.base.errors import ConfigurationError
from testbed.model import PageLoad, Record, canonical
from tests.analysis.sample import conditions, experiment, record, write_results
from tests.measured import load_of

SMALL = conditions(("amazon", "wsj"), (20.0, 100.0))


def small(folder: Path, records: Sequence[Record] | None = None, name: str = "small") -> Path:
    """Eight cells, one load each."""
    asked = experiment(1, name=name, conditions=SMALL, reference=None)
    return write_results(folder, [record(c) for c in SMALL] if records is None else records, asked)


def put(draft: Draft, folder: Path) -> Path:
    folder.mkdir()
    for name, text in draft.files.items():
        (folder / name).write_text(text)
    return folder


def test_a_baseline_is_read_as_the_results_that_it_was(tmp_path: Path) -> None:
    results = small(tmp_path / "results")
    kept = put(draft_baseline(results, tmp_path / "baseline"), tmp_path / "baseline")
    one, other = read_results(results), read_results(kept)
    assert one.identity == other.identity
    assert [r.trial for r in one.records] == [r.trial for r in other.records]
    assert [c.by_seed for c in cells_of(one)] == [c.by_seed for c in cells_of(other)]
    assert all(cell.status == "proven" for cell in cells_of(other))


def test_nothing_of_the_machine_is_kept(tmp_path: Path) -> None:
    manifest = read_results(small(tmp_path / "results")).manifest
    manifest["environment"]["facts"] |= {"machine": "Linux-odd", "memory_bytes": "1", "user": "me"}
    manifest["arguments"] = ["run", "/home/somebody/mine.toml"]
    kept = trim_manifest(manifest)
    assert kept["environment"]["facts"] == {"git_revision": "12" * 20, "git_dirty": "no"}
    assert kept["environment"]["parts"] == manifest["environment"]["parts"]
    assert "arguments" not in kept
    assert "somebody" not in json.dumps(kept)


def test_a_record_loses_what_it_cost_and_in_real_time_its_requests() -> None:
    virtual = record(SMALL[0])
    kept = trim_record(virtual)
    assert (kept.cost, kept.artefacts) == (None, virtual.artefacts)
    assert virtual.measured_as(PageLoad) is not None
    assert load_of(kept).requests == load_of(virtual).requests
    real = replace(virtual, trial=replace(virtual.trial, kernel="host"), machine={"steal_pct": 1.0})
    trimmed = trim_record(real)
    assert (trimmed.machine, trimmed.artefacts) == ({}, {})
    assert (load_of(trimmed).requests, load_of(trimmed).plt_ms) == ((), load_of(virtual).plt_ms)
    assert len(canonical(asdict(trimmed))) < len(canonical(asdict(real))) / 3


def test_what_is_not_proven_is_refused_cell_by_cell(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        draft_baseline(sample, tmp_path / "baseline")
    problems = refused.value.problems
    assert len(problems) == 4
    assert all("--resume" in problem for problem in problems)
    for outcome in ("1 unproven", "1 timeout", "1 lab_mismatch", "1 not run"):
        assert sum(outcome in problem for problem in problems) == 1, outcome


def test_results_without_a_record_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no trial that has ended"):
        draft_baseline(small(tmp_path / "results", []), tmp_path / "baseline")


def test_another_experiment_needs_another_name(tmp_path: Path) -> None:
    put(draft_baseline(small(tmp_path / "one"), tmp_path / "small"), tmp_path / "small")
    other = small(tmp_path / "two", name="other")
    with pytest.raises(ConfigurationError, match="--name other"):
        draft_baseline(other, tmp_path / "small")


def test_another_kernel_needs_another_name(tmp_path: Path) -> None:
    put(draft_baseline(small(tmp_path / "one"), tmp_path / "small"), tmp_path / "small")
    real = [
        replace(one, trial=trial, trial_id=trial.id)
        for one in map(record, SMALL)
        for trial in (replace(one.trial, kernel="host"),)
    ]
    with pytest.raises(ConfigurationError, match="--name small-host"):
        draft_baseline(small(tmp_path / "two", real), tmp_path / "small")


def test_cells_go_only_if_they_are_to(tmp_path: Path) -> None:
    baseline = tmp_path / "small"
    put(draft_baseline(small(tmp_path / "one"), baseline), baseline)
    asked = experiment(1, name="small", conditions=SMALL[:6], reference=None)
    fewer = write_results(tmp_path / "two", [record(c) for c in SMALL[:6]], asked)
    with pytest.raises(ConfigurationError, match="would lose 2 cells: page=wsj rtt_ms=100"):
        draft_baseline(fewer, baseline)
    assert draft_baseline(fewer, baseline, drop_cells=True).files


def test_a_knob_that_is_new_keeps_no_cell_from_being_compared(tmp_path: Path) -> None:
    baseline = tmp_path / "small"
    put(draft_baseline(small(tmp_path / "one"), baseline), baseline)
    drawn = [replace(c, jitter="computing") for c in SMALL]
    asked = experiment(1, name="small", conditions=drawn, reference=None)
    new = write_results(tmp_path / "two", [record(c) for c in drawn], asked)
    with pytest.raises(ConfigurationError, match="would lose 8 cells"):
        draft_baseline(new, baseline)
    assert "SAME: 8 cells" in draft_baseline(new, baseline, drop_cells=True).changes


def test_it_says_what_changes(tmp_path: Path) -> None:
    baseline = tmp_path / "small"
    first = draft_baseline(small(tmp_path / "one"), baseline)
    assert first.changes == "There was no such baseline before."
    assert "8 trials in 8 cells" in first.origin
    put(first, baseline)
    slower = [record(c, plt_ms=9000.0 if c == SMALL[5] else None) for c in SMALL]
    changes = draft_baseline(small(tmp_path / "two", slower), baseline).changes
    assert "different" in changes
    assert "wsj" in changes
