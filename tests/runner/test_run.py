from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from testbed.base.checksums import write_checksums
from testbed.base.errors import EXIT_INCOMPLETE, MissingError, StorageError
from testbed.kernel.run.interface import Kernel, RawResult
from testbed.model import Experiment, Outcome, PageLoad, Record, Trial
from testbed.results.manifest import Manifest, make_manifest
from testbed.results.progress import Display
from testbed.results.records import read_records
from testbed.results.tally import Tally, tally
from testbed.runner.local import on_this_machine
from testbed.runner.run import run_experiment
from tests.fake_kernel import FakeKernel
from tests.hallway import ENVIRONMENT, make_means
from tests.measured import load_of


class Quiet(Display):
    """A display that remembers."""

    def __init__(self) -> None:
        self.todo: Sequence[Trial] = ()
        self.skipped = 0
        self.seen: list[Record] = []
        self.began_with: list[Trial] = []
        self.waits = 0

    @contextmanager
    def showing(self, todo: Sequence[Trial], done: Sequence[Record]) -> Iterator[None]:
        self.todo, self.skipped = todo, len(done)
        yield

    def began(self, trial: Trial) -> None:
        self.began_with.append(trial)

    def waited(self) -> None:
        self.waits += 1

    def ended(self, record: Record) -> None:
        self.seen.append(record)


@pytest.fixture
def manifest(experiment: Experiment, trials: tuple[Trial, ...], now: datetime) -> Manifest:
    return make_manifest(experiment, ENVIRONMENT, now, ())


def go(folder: Path, manifest: Manifest, kernel: Kernel, jobs: int = 1) -> tuple[Tally, Quiet]:
    display = Quiet()
    perform = on_this_machine(make_means(kernel, jobs), ENVIRONMENT)
    return run_experiment(folder, manifest, perform, display), display


def test_every_trial_ends_as_a_record(
    results: Path, manifest: Manifest, trials: tuple[Trial, ...]
) -> None:
    outcomes: tuple[Outcome, ...] = (
        "ok", "failed", "timeout", "unsupported", "lab_mismatch", "unproven"
    )  # fmt: skip
    planned = {trial.id: outcome for trial, outcome in zip(trials, outcomes, strict=False)}
    total, display = go(results, manifest, FakeKernel(plan=planned))
    records = read_records(results)
    assert [r.trial_id for r in records] == list(manifest.trials)
    assert [r.outcome for r in records] == [*outcomes, "ok", "ok"]
    assert display.seen == list(records)
    assert display.began_with == list(trials)
    assert all(r.reason for r in records if r.outcome != "ok")
    assert {r.environment for r in records} == {ENVIRONMENT.id}
    assert total.outcomes == {**dict.fromkeys(outcomes, 1), "ok": 3}
    assert (total.not_run, total.interrupted) == (0, False)


def test_one_and_two_jobs_give_the_same_records(tmp_path: Path, manifest: Manifest) -> None:
    found = []
    for jobs in (1, 2, 5):
        folder = tmp_path / str(jobs)
        folder.mkdir()
        go(folder, manifest, FakeKernel(seconds=0.005), jobs)
        found.append({r.trial_id: (load_of(r), r.proof, r.lab) for r in read_records(folder)})
        assert len(found[-1]) == len(read_records(folder)) == len(manifest.trials)
    assert found[0] == found[1] == found[2]


def test_slots_are_used_by_one_trial_at_a_time(results: Path, manifest: Manifest) -> None:
    lock, busy, most, all_at_once = threading.Lock(), set[int](), 0, threading.Event()

    class Watching(FakeKernel):
        def run(
            self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
        ) -> RawResult:
            nonlocal most
            with lock:
                assert slot not in busy
                busy.add(slot)
                most = max(most, len(busy))
            if most == 3:
                all_at_once.set()
            assert all_at_once.wait(60)
            try:
                return FakeKernel.run(self, trial, page, out, slot, cancel)
            finally:
                with lock:
                    busy.remove(slot)

    total, _ = go(results, manifest, Watching(), jobs=3)
    assert total.outcomes["ok"] == len(manifest.trials)
    assert most == 3


@pytest.mark.parametrize("what", ["page", "bundle"])
def test_a_file_that_changes_during_the_run_makes_no_number(
    results: Path, tmp_path: Path, manifest: Manifest, what: str
) -> None:
    built = {name: tmp_path / name for name in ("page", "bundle")}
    for folder in built.values():
        folder.mkdir()
        (folder / "file").write_text("whole")
        write_checksums(folder)

    class Truncating(FakeKernel):
        def run(
            self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
        ) -> RawResult:
            raw = FakeKernel.run(self, trial, page, out, slot, cancel)
            if trial.id == manifest.trials[2]:
                (built[what] / "file").write_text("whol")
            return raw

    means = make_means(Truncating())
    means = replace(means, pages=dict.fromkeys(means.pages, built["page"]),
                    built=(built["bundle"],))  # fmt: skip
    total = run_experiment(results, manifest, on_this_machine(means, ENVIRONMENT), Quiet())
    records = read_records(results)
    assert [r.outcome for r in records] == ["ok"] * 2 + ["failed"] * 6
    assert total.exit_code == EXIT_INCOMPLETE
    assert all(r.measured_as(PageLoad) is None for r in records[2:])
    assert f"{built[what]}: file changed while trials used it" in (records[2].reason or "")


def test_resume_runs_what_is_not_ok_and_counts_attempts(
    results: Path, manifest: Manifest, trials: tuple[Trial, ...]
) -> None:
    planned: dict[str, Outcome] = {trials[1].id: "failed", trials[4].id: "timeout"}
    go(results, manifest, FakeKernel(plan=planned))
    total, display = go(results, manifest, FakeKernel(plan={trials[4].id: "timeout"}))
    assert [trial.id for trial in display.todo] == [trials[1].id, trials[4].id]
    assert display.skipped == 6
    assert total.outcomes["timeout"] == 1
    total, display = go(results, manifest, FakeKernel())
    assert total.outcomes["ok"] == len(trials)
    attempts = [(r.trial_id, r.attempt) for r in read_records(results)]
    assert len(set(attempts)) == len(attempts) == 11
    assert {a for i, a in attempts if i == trials[1].id} == {1, 2}
    assert {a for i, a in attempts if i == trials[4].id} == {1, 2, 3}
    total, display = go(results, manifest, FakeKernel())
    assert display.todo == []
    assert total.exit_code == 0


class Disturbed(FakeKernel):
    """A kernel in real time, whose machine is busy during the first ``times`` runs of a trial."""

    def __init__(self, which: str, times: int, outcome: Outcome = "lab_mismatch") -> None:
        FakeKernel.__init__(self, name="host")
        for name, value in {"which": which, "left": [times], "outcome": outcome}.items():
            object.__setattr__(self, name, value)

    __slots__ = ("left", "outcome", "which")
    which: str
    left: list[int]
    outcome: Outcome

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        busy = trial.id == self.which and self.left[0] > 0
        self.left[0] -= busy
        kernel = FakeKernel(plan={trial.id: self.outcome} if busy else {})
        return kernel.run(trial, page, out, slot, cancel)


@pytest.mark.parametrize(
    ("times", "outcomes"),
    [(1, ["lab_mismatch", "ok"]), (2, ["lab_mismatch", "lab_mismatch", "ok"]),
     (9, ["lab_mismatch", "lab_mismatch", "lab_mismatch"])],
)  # fmt: skip
def test_a_disturbed_trial_in_real_time_is_taken_again_at_once(
    results: Path, manifest: Manifest, times: int, outcomes: list[str]
) -> None:
    which = manifest.trials[2]
    total, _ = go(results, manifest, Disturbed(which, times))
    records = read_records(results)
    taken = [r for r in records if r.trial_id == which]
    assert [r.outcome for r in taken] == outcomes
    assert [r.attempt for r in taken] == list(range(1, len(outcomes) + 1))
    # Before the next one: the block stays together.
    assert [r.trial_id for r in records[2 : 2 + len(outcomes)]] == [which] * len(outcomes)
    assert len(records) == len(manifest.trials) - 1 + len(outcomes)
    assert total.exit_code == (0 if outcomes[-1] == "ok" else 1)
    kept = sorted(p.name for p in (results / "trials").iterdir() if p.name.startswith(which))
    assert kept == [which, *(f"{which}.attempt{i}" for i in range(1, len(outcomes)))]


def test_what_is_not_to_be_repeated_is_not(results: Path, manifest: Manifest) -> None:
    which, asked = manifest.trials[2], []

    def repeatable(record: Record) -> bool:
        asked.append((record.trial_id, record.attempt))
        return record.attempt < 2

    means = make_means(Disturbed(which, 9), 1)
    run_experiment(results, manifest, on_this_machine(means, ENVIRONMENT, repeatable), Quiet())
    assert asked == [(which, 1), (which, 2)]
    assert [r.attempt for r in read_records(results) if r.trial_id == which] == [1, 2]


def test_a_failure_is_a_result_and_is_not_taken_again(results: Path, manifest: Manifest) -> None:
    go(results, manifest, Disturbed(manifest.trials[0], 1, "failed"))
    assert len(read_records(results)) == len(manifest.trials)


class Failing(FakeKernel):
    """Raises ``error`` in the third trial."""

    def __init__(self, error: Exception, third: str) -> None:
        FakeKernel.__init__(self)
        object.__setattr__(self, "error", error)
        object.__setattr__(self, "third", third)

    __slots__ = ("error", "third")
    error: Exception
    third: str

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        if trial.id == self.third:
            raise self.error
        return FakeKernel.run(self, trial, page, out, slot, cancel)


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [(MissingError("no such kernel"), MissingError, "no such kernel"),
     (OSError(errno.ENOSPC, "No space left on device"), StorageError, "--resume"),
     (ZeroDivisionError("a bug"), ZeroDivisionError, "a bug")],
)  # fmt: skip
def test_what_no_trial_can_help_ends_the_run_with_the_records_so_far(
    results: Path, manifest: Manifest, trials: tuple[Trial, ...], error: Exception,
    raised: type[Exception], message: str,
) -> None:  # fmt: skip
    with pytest.raises(raised, match=message):
        go(results, manifest, Failing(error, trials[2].id))
    assert [r.trial_id for r in read_records(results)] == [t.id for t in trials[:2]]
    total, _ = go(results, manifest, FakeKernel())
    assert total.outcomes["ok"] == len(trials)


def test_a_full_disk_stops_the_workers(
    results: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Slow(FakeKernel):
        """The first trial is quick, the others take a minute unless they are stopped."""

        def run(
            self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
        ) -> RawResult:
            if trial.id == manifest.trials[0]:
                monkeypatch.setattr(os, "write", full)
            elif cancel.wait(60):
                pass
            return FakeKernel.run(self, trial, page, out, slot, cancel)

    with pytest.raises(StorageError, match="No space left"):
        go(results, manifest, Slow(), jobs=2)
    monkeypatch.undo()
    assert read_records(results) == ()


@pytest.mark.usefixtures("not_below_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_ended_and_leaves_nothing_of_the_rest(
    results: Path, manifest: Manifest, number: signal.Signals
) -> None:
    before = signal.getsignal(number)

    class Interrupted(FakeKernel):
        def run(
            self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
        ) -> RawResult:
            if trial.id == manifest.trials[2]:
                os.kill(os.getpid(), number)
                assert cancel.wait(60)
            return FakeKernel.run(self, trial, page, out, slot, cancel)

    total, _ = go(results, manifest, Interrupted())
    assert (total.interrupted, total.exit_code) == (True, 130)
    assert [r.trial_id for r in read_records(results)] == list(manifest.trials[:2])
    assert sorted(p.name for p in (results / "trials").iterdir()) == sorted(manifest.trials[:2])
    assert signal.getsignal(number) == before
    assert not [t for t in threading.enumerate() if t.name.startswith("trial")]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["ok"], 0), (["ok", "lab_mismatch"], 1), (["ok", "unproven"], 1),
     (["unproven", "unsupported"], 3), (["ok", "failed"], 4), (["unproven", "timeout"], 4),
     (["unsupported", "failed"], 4), (["ok"] * 7, 4)],
)  # fmt: skip
def test_the_exit_code_says_the_worst(
    trials: tuple[Trial, ...], outcomes: list[Outcome], code: int
) -> None:
    some = trials[: len(outcomes)]
    records = [
        Record(trial.id, trial, outcome, "e") for trial, outcome in zip(some, outcomes, strict=True)
    ]
    planned = trials if len(outcomes) == 7 else some
    assert tally(planned, records).exit_code == code
    assert tally(planned, records, interrupted=True).exit_code == 130


def test_an_ok_attempt_stays_ok(trials: tuple[Trial, ...]) -> None:
    attempts: list[Outcome] = ["failed", "ok", "failed"]
    records = [
        Record(trials[0].id, trials[0], o, "e", attempt=i) for i, o in enumerate(attempts, 1)
    ]
    assert tally(trials[:1], records).outcomes["ok"] == 1
    assert tally(trials[:2], records[:1]).sentence() == "1 failed, 1 not run"
