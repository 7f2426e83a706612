from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import ConfigurationError, StorageError
from testbed.experiment.plan import plan_trials
from testbed.model import Cost, Experiment, Record, Trial, canonical
from testbed.results.environment import Environment
from testbed.results.folder import new_results, open_folder, refuse_explicit
from testbed.results.manifest import load_manifest, make_manifest, read_manifest, write_manifest
from testbed.results.records import read_records
from tests.fake_kernel import observe
from tests.hallway import ENVIRONMENT


def record(trial: Trial, attempt: int = 1) -> Record:
    return Record(trial.id, trial, "failed", ENVIRONMENT.id, "no reason", attempt=attempt)


def fill(folder: Path, trials: tuple[Trial, ...]) -> None:
    with open_folder(folder) as store:
        for trial in trials:
            store.append(record(trial))


def create(base: Path, now: datetime, explicit: Path | None = None) -> Path:
    with new_results(base, "quick", now, explicit) as folder:
        return folder


def test_a_folder_is_named_by_time_and_experiment(results: Path, now: datetime) -> None:
    first = create(results, now)
    assert first.name == "20260102T030405Z-quick"
    assert (results / "latest").resolve() == first
    second = create(results, now)
    assert second.name == "20260102T030405Z-quick-2"
    later = create(results, now + timedelta(seconds=1))
    assert (results / "latest").resolve() == later
    assert sorted(path.name for path in results.iterdir()) == sorted(
        [first.name, second.name, later.name, "latest"]
    )


def test_an_explicit_folder_is_never_overwritten(tmp_path: Path, now: datetime) -> None:
    folder = tmp_path / "a" / "b"
    assert create(tmp_path, now, folder) == folder
    (folder / "something").touch()
    with pytest.raises(ConfigurationError, match="never overwritten"):
        create(tmp_path, now, folder)
    assert [path.name for path in folder.iterdir()] == ["something"]


def test_a_place_that_cannot_hold_results(tmp_path: Path, now: datetime) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="-o DIR"):
        create(tmp_path / "file", now)
    with pytest.raises(StorageError, match="cannot make"):
        create(tmp_path, now, tmp_path / "file")


def test_records_come_back_equal(results: Path, trials: tuple[Trial, ...]) -> None:
    from testbed.kernel.run.interface import RawResult
    from tests.fake_kernel import conclude

    observation = results / "observation.json"
    written = []
    with open_folder(results) as store:
        for trial in trials:
            observation.write_text(json.dumps(observe(trial)))
            raw = RawResult("ended", "", "", None, observation)
            written.append(conclude(trial, raw, results, ENVIRONMENT.id, 1))
            store.append(written[-1])
            assert read_records(results) == tuple(written)
    assert {r.outcome for r in written} == {"ok"}
    assert store.done() == {trial.id for trial in trials}


def test_a_half_written_line_is_reported_skipped_and_moved_aside(
    results: Path, trials: tuple[Trial, ...], caplog: pytest.LogCaptureFixture
) -> None:
    fill(results, trials[:3])
    path = results / "records.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, len(lines[2]) // 2, len(lines[2]) - 1):
        path.write_bytes(lines[0] + lines[1] + lines[2][:cut])
        caplog.clear()
        assert [r.trial_id for r in read_records(results)] == [t.id for t in trials[:2]]
        assert "records.jsonl:3: the last record is half-written" in caplog.text
        with open_folder(results) as store:
            store.append(record(trials[2]))
        assert path.read_bytes() == whole
    aside = sorted(results.glob("records.jsonl.torn-*"))
    assert sorted(p.stat().st_size for p in aside) == [
        1, len(lines[2]) // 2, len(lines[2]) - 1,
    ]  # fmt: skip


def test_a_block_of_zeros_at_the_end_is_torn_too(results: Path, trials: tuple[Trial, ...]) -> None:
    fill(results, trials[:1])
    with (results / "records.jsonl").open("ab") as stream:
        stream.write(b"\0" * 50 + b"\n")
    assert len(read_records(results)) == 1
    with open_folder(results) as store:
        store.append(record(trials[1]))
    assert len(read_records(results)) == 2


def test_a_broken_line_in_the_middle_is_an_error(results: Path, trials: tuple[Trial, ...]) -> None:
    fill(results, trials[:3])
    path = results / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:40] + b"\n" + lines[2])
    with pytest.raises(StorageError, match=r"records\.jsonl:2"):
        read_records(results)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"schema": 1}, "schema 1, but this testbed reads schema 3"),
     ({"schema": None}, "schema None"), ({"outcome": "splendid"}, "outcome"),
     ({"attempt": "1"}, "attempt"), ({"trial_id": "0" * 16}, "it says trial_id 0000000000000000")],
)  # fmt: skip
def test_a_record_of_another_kind_is_named(
    results: Path, trials: tuple[Trial, ...], change: dict[str, object], complaint: str
) -> None:
    fill(results, trials[:1])
    path = results / "records.jsonl"
    path.write_text(canonical(json.loads(path.read_text()) | change) + "\n")
    with pytest.raises(StorageError, match=r"records\.jsonl:1: ") as caught:
        read_records(results)
    assert complaint in str(caught.value)


def test_no_records_yet_is_no_error_but_no_folder_is(results: Path) -> None:
    assert read_records(results) == ()
    with pytest.raises(ConfigurationError, match="no such folder"):
        read_records(results / "nowhere")


def test_two_runs_never_write_the_same_folder(results: Path) -> None:
    with (
        open_folder(results),
        pytest.raises(StorageError, match="another run"),
        open_folder(results),
    ):
        pass
    with open_folder(results):
        pass
    assert {path.name for path in results.iterdir()} == {"records.jsonl", "costs.jsonl"}


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """The kernel writes up to ``size`` bytes of a file, then refuses with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_that_does_not_fit_leaves_those_before_it(
    results: Path, trials: tuple[Trial, ...]
) -> None:
    with open_folder(results) as store:
        store.append(record(trials[0]))
        size = (results / "records.jsonl").stat().st_size
        with no_file_beyond(size + 100), pytest.raises(StorageError) as caught:
            store.append(record(trials[1]))
        assert "File too large; the 1 records before it are intact" in str(caught.value)
        assert f"--resume {results}" in str(caught.value)
        assert (results / "records.jsonl").stat().st_size == size
        store.append(record(trials[1]))
    assert [r.trial_id for r in read_records(results)] == [t.id for t in trials[:2]]


@pytest.mark.root
def test_a_full_disk_leaves_the_records_before_it(
    tmp_path: Path, trials: tuple[Trial, ...]
) -> None:
    proc.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)])
    try:
        written = 0
        with open_folder(tmp_path) as store, pytest.raises(StorageError, match="No space left"):
            for attempt in range(1, 100):
                store.append(record(trials[0], attempt))
                written = attempt
        assert written > 3
        assert [r.attempt for r in read_records(tmp_path)] == list(range(1, written + 1))
    finally:
        proc.run(["umount", str(tmp_path)])


def test_a_failing_flush_is_an_error_and_takes_the_record_back(
    results: Path, trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_folder(results) as store:
        store.append(record(trials[0]))

        def fail(_descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail)
            with pytest.raises(StorageError, match="Input/output error"):
                store.append(record(trials[1]))
    assert [r.trial_id for r in read_records(results)] == [trials[0].id]


def test_each_attempt_has_a_fresh_folder_and_keeps_the_old(
    results: Path, trials: tuple[Trial, ...]
) -> None:
    trial = trials[0]
    with open_folder(results) as store:
        out = store.fresh_trial(trial.id)
        (out / "left-by-a-killed-run").touch()
        assert list(store.fresh_trial(trial.id).iterdir()) == []
        (out / "console.log").write_text("first")
        store.append(record(trial))
        assert list(store.fresh_trial(trial.id).iterdir()) == []
        (out / "console.log").write_text("second")
        store.append(record(trial, 2))
        store.fresh_trial(trial.id)
    kept = {p.parent.name: p.read_text() for p in (results / "trials").glob("*/console.log")}
    assert kept == {f"{trial.id}.attempt1": "first", f"{trial.id}.attempt2": "second"}


def test_the_manifest_comes_back_equal(
    results: Path, experiment: Experiment, environment: Environment, now: datetime
) -> None:
    trials = plan_trials(experiment)
    manifest = make_manifest(experiment, environment, now, ("run", "x.toml"))
    write_manifest(results, manifest)
    assert load_manifest(results) == manifest
    plain = read_manifest(results)
    assert plain["environment"]["id"] == environment.id
    assert plain["trials"] == [trial.id for trial in trials]
    assert plain["created_utc"] == "2026-01-02T03:04:05+00:00"
    assert not list(results.glob(".manifest*"))


def test_a_manifest_that_does_not_fit_on_the_disk(
    results: Path, experiment: Experiment, environment: Environment, now: datetime
) -> None:
    manifest = make_manifest(experiment, environment, now, ())
    with no_file_beyond(100), pytest.raises(StorageError, match="File too large"):
        write_manifest(results, manifest)
    assert list(results.iterdir()) == []


@pytest.mark.parametrize("error", [StorageError("full"), KeyboardInterrupt()])
def test_a_start_that_fails_leaves_no_folder(
    tmp_path: Path, now: datetime, error: BaseException
) -> None:
    before = create(tmp_path, now)
    empty = tmp_path / "empty"
    empty.mkdir()
    for explicit, left in ((None, False), (tmp_path / "new", False), (empty, True)):
        with pytest.raises(type(error)), new_results(tmp_path, "quick", now, explicit) as folder:
            (folder / "7.3").mkdir()
            (folder / "7.3" / "manifest.json").touch()
            (folder / ".manifest.json.new").touch()
            raise error
        assert folder.exists() == left
    assert list(empty.iterdir()) == []
    assert (tmp_path / "latest").resolve() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [before.name, "empty", "latest"]


@pytest.mark.parametrize("kind", ["folder", "full"])
def test_where_latest_cannot_be_a_link_no_run_begins(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "folder":
        (tmp_path / "latest").mkdir()
        (tmp_path / "latest" / "mine").touch()
    else:

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Path, "symlink_to", fail)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match="latest cannot point at new results"):
        create(tmp_path, now)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_name_latest_is_for_the_link(tmp_path: Path, now: datetime) -> None:
    results = tmp_path / "results"
    for name in (results / "latest", results / ".." / "results" / "latest"):
        with pytest.raises(ConfigurationError, match="the link to the newest results"):
            create(results, now, name)
    assert list(tmp_path.iterdir()) == []
    assert create(results, now, tmp_path / "latest").is_dir()
    first = create(results, now)
    with pytest.raises(ConfigurationError, match="the link to the newest results"):
        create(results, now, results / "latest")
    assert (results / "latest").resolve() == first


def test_a_place_for_results_is_looked_at_beforehand(tmp_path: Path) -> None:
    for name in ("full", "begun", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "begun" / ".manifest.json.new").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for name in ("begun", "empty", "missing"):
        refuse_explicit(tmp_path / "results", tmp_path / name)
    for name, problem in (("full", "never overwritten"), ("file", "is no folder")):
        with pytest.raises(ConfigurationError, match=problem):
            refuse_explicit(tmp_path / "results", tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_no_folder_can_have(tmp_path: Path, now: datetime) -> None:
    for name in ("x" * 300, "file/x"):
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match="cannot make the results folder"):
            create(tmp_path, now, tmp_path / name)


def test_two_starts_in_one_folder_do_not_meet(tmp_path: Path, now: datetime) -> None:
    with new_results(tmp_path, "quick", now, tmp_path / "a") as folder:
        with pytest.raises(StorageError, match="another run"):
            create(tmp_path, now, folder)
        (folder / "manifest.json").touch()
    with pytest.raises(ConfigurationError, match="never overwritten"):
        create(tmp_path, now, folder)
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


def test_a_killed_start_does_not_bar_its_folder(tmp_path: Path, now: datetime) -> None:
    (tmp_path / ".manifest.json.new").write_text("{")
    assert create(tmp_path / "..", now, tmp_path) == tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "not JSON"), ("[]", "schema None"),
     ('{"schema": 1}', "schema 1, but this testbed reads schema 3"),
     ('{"schema": 3}', "does not hold a manifest")],
)  # fmt: skip
def test_a_manifest_of_another_kind_is_named(results: Path, text: str, complaint: str) -> None:
    (results / "manifest.json").write_text(text)
    with pytest.raises(StorageError, match=complaint):
        load_manifest(results)


def test_no_manifest(results: Path) -> None:
    (results / "file").touch()
    for folder, why in ((".", "no manifest.json"), ("nowhere", "no such"), ("file", "is a file")):
        with pytest.raises(ConfigurationError, match=f"not a results folder: .*{why}"):
            read_manifest(results / folder)


def test_a_record_with_every_field_survives(results: Path, trials: tuple[Trial, ...]) -> None:
    full = replace(record(trials[0]), artefacts={"load.har": "0" * 64}, reason="ü\n\u2028")
    with open_folder(results) as store:
        store.append(full)
    assert read_records(results) == (full,)


def test_a_line_does_not_say_what_a_trial_cost_and_reading_does(
    results: Path, trials: tuple[Trial, ...]
) -> None:
    cost = Cost(cpu_s=0.5, wall_s=0.75, virtual_s=30.0)
    with open_folder(results) as folder:
        folder.append(replace(record(trials[0]), cost=cost))
        folder.append(record(trials[1]))
    assert b'"cost":null' in (results / "records.jsonl").read_bytes().splitlines()[0]
    assert [r.cost for r in read_records(results)] == [cost, None]
    with (results / "costs.jsonl").open("ab") as stream:
        stream.write(b'{"trial_id": "half')
    assert [r.cost for r in read_records(results)] == [cost, None]


def test_a_run_that_ends_puts_its_lines_in_the_order_of_its_plan(
    results: Path, trials: tuple[Trial, ...]
) -> None:
    planned = [trial.id for trial in trials[1:]]
    with open_folder(results) as folder:
        for trial, attempt in ((3, 1), (1, 2), (0, 1), (2, 1), (1, 1)):
            folder.append(record(trials[trial], attempt))
        folder.put_in_order(planned)
        order = [(r.trial_id, r.attempt) for r in folder.records]
        assert order == [(r.trial_id, r.attempt) for r in read_records(results)]
        folder.append(record(trials[4]))
    names = [trials[n].id for n in (0, 1, 1, 2, 3, 4)]
    assert [r.trial_id for r in read_records(results)] == names
    assert [attempt for _, attempt in order] == [1, 1, 2, 1, 1]
    assert {path.name for path in results.iterdir()} == {"records.jsonl", "costs.jsonl"}
