from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.base.errors import MissingError, StorageError, TestbedError
from testbed.experiment.plan import plan_trials
from testbed.model import Trial
from testbed.results.agreement import DisagreementError
from testbed.results.manifest import Manifest, make_manifest, write_manifest
from testbed.results.progress import Quiet
from testbed.results.records import read_records
from testbed.results.tally import Tally
from testbed.way.cluster import on_cluster
from testbed.way.local import on_this_machine
from testbed.way.run import run_experiment
from tests.fake_kernel import FakeKernel
from tests.hallway import ENVIRONMENT, make_experiment, make_means
from tests.simulated_pool import NEVER, SimulatedPool, Worker

EXPERIMENT = make_experiment(repetitions=4)
TRIALS = plan_trials(EXPERIMENT)
FULL = os.strerror(errno.ENOSPC)


@pytest.fixture
def manifest() -> Manifest:
    return make_manifest(EXPERIMENT, ENVIRONMENT, datetime(2026, 1, 2, tzinfo=UTC), ())


def pool_of(workers: Mapping[str, Worker], gone_s: float = NEVER) -> SimulatedPool:
    return SimulatedPool(workers, TRIALS, ENVIRONMENT.id, cost_of, gone_s)


def cost_of(trial: Trial) -> float:
    return 1.0 + (trial.seed % 3) + 4.0 * (trial.page == "amazon")


def go(
    folder: Path,
    manifest: Manifest,
    pool: SimulatedPool,
    overlap: float = 5.0,
    kernel: FakeKernel | None = None,
) -> Tally:
    folder.mkdir(exist_ok=True)
    if not (folder / "manifest.json").exists():
        write_manifest(folder, manifest)
    here = on_this_machine(make_means(kernel or FakeKernel()), ENVIRONMENT)
    return run_experiment(folder, manifest, on_cluster(pool, manifest, here, overlap), Quiet())


def contents(folder: Path) -> dict[str, bytes]:
    kept = [folder / "records.jsonl", *(folder / "trials").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one machine writes."""
    folder = tmp_path_factory.mktemp("alone")
    plan = make_manifest(EXPERIMENT, ENVIRONMENT, datetime(2026, 1, 2, tzinfo=UTC), ())
    here = on_this_machine(make_means(FakeKernel()), ENVIRONMENT)
    run_experiment(folder, plan, here, Quiet())
    return contents(folder)


def test_a_cluster_writes_what_one_machine_would(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes]
) -> None:
    pool = pool_of({f"w{n}": Worker(speed=1.0 + n, slots=1 + n % 2) for n in range(5)})
    assert go(tmp_path / "out", manifest, pool).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert all(r.cost is not None for r in read_records(tmp_path / "out"))
    ran = Counter(trial_id for _, trial_id in pool.ran)
    again = sum(ran.values()) - len(TRIALS)
    assert 4 <= again <= 5 + len(TRIALS) * 0.05 + 1  # one of each worker, and a share of all
    assert max(ran.values()) == 2


def test_no_worker_runs_its_own_again(tmp_path: Path, manifest: Manifest) -> None:
    pool = pool_of({"a": Worker(), "b": Worker()})
    go(tmp_path / "out", manifest, pool, overlap=30.0)
    by_trial: dict[str, list[str]] = {}
    for name, trial_id in pool.ran:
        by_trial.setdefault(trial_id, []).append(name)
    assert all(len(set(names)) == len(names) for names in by_trial.values())


def test_the_longest_begin_first_and_all_end_together(tmp_path: Path, manifest: Manifest) -> None:
    pool = pool_of({f"w{n}": Worker() for n in range(4)})
    go(tmp_path / "out", manifest, pool, overlap=0.0)
    pages = {trial.id: trial.page for trial in TRIALS}
    begun = [pages[trial_id] for _, trial_id in pool.ran]
    assert begun[:12].count("amazon") == 12
    assert begun[-12:].count("wsj") > 8
    work_s = sum(map(cost_of, TRIALS))
    assert pool.time_s < 1.15 * work_s / 4 + 2.0


def test_a_worker_of_another_environment_is_refused_by_name(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    differs = "differs: root: 1 then, 2 now"
    pool = pool_of({"good": Worker(), "other": Worker(refusal=differs)})
    go(tmp_path / "out", manifest, pool)
    assert contents(tmp_path / "out") == alone
    assert {name for name, _ in pool.ran} == {"good"}
    assert f"worker other is refused: {differs}" in caplog.text


def test_a_worker_that_lies_from_the_start_is_refused_and_nothing_of_it_counts(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    pool = pool_of({"a": Worker(), "liar": Worker(lies=True, speed=3.0), "c": Worker()})
    assert go(tmp_path / "out", manifest, pool).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert "worker liar is refused: its result of trial" in caplog.text


def test_the_only_worker_is_held_against_this_machine(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    assert go(tmp_path / "out", manifest, pool_of({"one": Worker()})).exit_code == 0
    assert contents(tmp_path / "out") == alone
    with pytest.raises(MissingError, match="liar: its result of trial"):
        go(tmp_path / "lies", manifest, pool_of({"liar": Worker(lies=True)}))
    assert read_records(tmp_path / "lies") == ()


def test_a_worker_that_begins_to_lie_ends_the_run(tmp_path: Path, manifest: Manifest) -> None:
    liar = Worker()
    pool = pool_of({"a": Worker(), "liar": liar, "c": Worker()})
    submit = pool.submit

    def later(number: int, worker: str, request: bytes) -> None:
        liar.lies = pool.time_s > 40
        submit(number, worker, request)

    pool.submit = later  # type: ignore[method-assign]
    with pytest.raises(DisagreementError, match="worker liar sent another result"):
        go(tmp_path / "out", manifest, pool, overlap=50.0)


@pytest.mark.parametrize("overlap", [0.0, 5.0])
def test_a_worker_that_is_killed_loses_its_batch_to_another(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], overlap: float
) -> None:
    pool = pool_of({"a": Worker(dies_s=30), "b": Worker(), "c": Worker(joins_s=50)})
    assert go(tmp_path / "out", manifest, pool, overlap).exit_code == 0
    assert contents(tmp_path / "out") == alone


@pytest.mark.parametrize("for_s", [NEVER, 150.0])
def test_a_worker_whose_clock_stands_loses_its_lease_and_may_come_back(
    tmp_path: Path,
    manifest: Manifest,
    alone: dict[str, bytes],
    caplog: pytest.LogCaptureFixture,
    for_s: float,
) -> None:
    pool = pool_of({"a": Worker(hangs_s=(20, for_s)), "b": Worker(speed=0.5)})
    assert go(tmp_path / "out", manifest, pool).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert "worker a stands still for" in caplog.text


def test_a_slow_worker_keeps_its_lease(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    pool = pool_of({"slow": Worker(speed=0.02), "b": Worker()})
    assert go(tmp_path / "out", manifest, pool, overlap=0.0).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert "stands still" not in caplog.text


def test_a_full_disk_and_a_damaged_answer(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    pool = pool_of({
        "full": Worker(fails=lambda _: f"cannot write: {FULL}"),
        "broken": Worker(alters=lambda data: data[:-3]),
        "twice": Worker(twice=True),
    })  # fmt: skip
    assert go(tmp_path / "out", manifest, pool).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert f"worker full is refused: cannot write: {FULL}" in caplog.text
    assert "worker broken is refused: what it sent of trial" in caplog.text


def test_a_worker_on_which_all_fails_eats_no_plan(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    pool = pool_of({"broken": Worker(breaks=True, speed=50.0), "b": Worker(), "c": Worker()})
    assert go(tmp_path / "out", manifest, pool).exit_code == 0
    assert contents(tmp_path / "out") == alone
    assert "worker broken is refused: trial" in caplog.text
    assert sum(name == "broken" for name, _ in pool.ran) < 12


def test_what_fails_on_two_workers_is_a_result(tmp_path: Path, manifest: Manifest) -> None:
    pool = pool_of({"a": Worker(breaks=True), "b": Worker(breaks=True)})
    here = FakeKernel(plan=dict.fromkeys(manifest.trials, "failed"))
    total = go(tmp_path / "out", manifest, pool, kernel=here)
    assert (total.outcomes["failed"], total.exit_code) == (len(TRIALS), 4)
    assert {r.attempt for r in read_records(tmp_path / "out")} == {1}


def test_a_trial_that_no_worker_can_run_is_left_out_and_told(
    tmp_path: Path, manifest: Manifest, caplog: pytest.LogCaptureFixture
) -> None:
    bad = TRIALS[7].id
    workers = {f"w{n}": Worker(fails=lambda i: "it crashed" * (i == bad)) for n in range(4)}
    total = go(tmp_path / "out", manifest, pool_of(workers))
    assert (total.not_run, total.exit_code) == (1, 4)
    assert f"trial {bad} could not be run by 3 workers: it crashed" in caplog.text
    assert len(read_records(tmp_path / "out")) == len(TRIALS) - 1


def test_without_workers_the_run_ends_and_says_so(tmp_path: Path, manifest: Manifest) -> None:
    with pytest.raises(MissingError, match="has no worker that can run this: none has joined"):
        go(tmp_path / "out", manifest, pool_of({}))
    with pytest.raises(MissingError, match="x: stands still"):
        go(tmp_path / "out", manifest, pool_of({"x": Worker(hangs_s=(5, NEVER))}))


def test_a_scheduler_that_goes_leaves_a_folder_to_go_on_with(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes]
) -> None:
    with pytest.raises(StorageError, match="--resume"):
        go(tmp_path / "out", manifest, pool_of({"a": Worker(), "b": Worker()}, gone_s=60))
    assert 0 < len(read_records(tmp_path / "out")) < len(TRIALS)
    assert go(tmp_path / "out", manifest, pool_of({"c": Worker()})).exit_code == 0
    assert contents(tmp_path / "out") == alone


def disturbed(chance: random.Random) -> dict[str, Worker]:
    """Three to six workers, all but one of them with faults."""
    workers = {"sound": Worker(speed=chance.uniform(0.3, 2))}
    for number in range(chance.randint(2, 5)):
        worker = Worker(speed=chance.uniform(0.2, 3), slots=chance.randint(1, 2))
        for fault in chance.sample(range(10), chance.randint(1, 2)):
            match fault:
                case 0:
                    worker.dies_s = chance.uniform(1, 120)
                case 1:
                    worker.joins_s = chance.uniform(1, 120)
                case 2:
                    worker.hangs_s = (chance.uniform(1, 90), chance.choice([NEVER, 100.0, 250.0]))
                case 3:
                    worker.refusal = "differs: code.bundle: 1 then, 2 now"
                case 4:
                    worker.lies = True
                case 5:
                    worker.twice = True
                case 6:
                    rare = chance.choice([2, 5, 10])
                    worker.fails = lambda i, rare=rare: FULL * (int(i, 16) % rare == 0)  # type: ignore[misc]
                case 7:
                    worker.alters = lambda data: data[:-1] + b"?" if data[-9] % 3 == 0 else data
                case 8:
                    worker.setup_s = 200.0
                case 9:
                    worker.breaks = True
        workers[f"w{number}"] = worker
    return workers


@pytest.mark.parametrize("seed", range(100))
def test_faults_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, manifest: Manifest, alone: dict[str, bytes], seed: int
) -> None:
    """Whatever happens to workers, scheduler and run: in the end the bytes are one machine's."""
    chance = random.Random(seed)  # noqa: S311 - faults, not secrets
    for _ in range(6):
        gone_s = chance.choice([NEVER, chance.uniform(5, 150)])
        try:
            total = go(tmp_path / "out", manifest, pool_of(disturbed(chance), gone_s), 20.0)
        except DisagreementError:
            raise  # no worker lies only once it is trusted
        except TestbedError:
            continue
        if total.exit_code == 0:
            break
    else:
        assert go(tmp_path / "out", manifest, pool_of({"sound": Worker()})).exit_code == 0
    assert contents(tmp_path / "out") == alone
