"""The same bytes, however a plan is run: at once, in parts, on a cluster, resumed, or from a store.

And on a cluster whatever happens to it: what is lost runs again, and nothing counts twice.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from testbed.base import places, proc
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from tests.many.dask_cluster import Dask
from tests.many.running import QUICK, RUN_S, assert_same, start

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.guest,
    pytest.mark.skipif(os.geteuid() != 0, reason="workers are other users"),
]
PLAN = ("run", QUICK, "-n", "4")
TRIALS = 8
DEADLINE_S = 120
ANOTHER_YEAR = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME)
        now->tv_sec = now->tv_sec % 10000000 + 825000000;  /* of the year 1996 */
    return failed;
}
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one run on one machine writes."""
    folder = tmp_path_factory.mktemp("alone") / "out"
    run(folder)
    return folder


def run(folder: Path, *words: str, tree: Path = places.ROOT, **environment: str) -> str:
    """Run the plan into ``folder`` to its end, and return what was said."""
    done = start(*PLAN, *words, "-o", str(folder), environment=environment, tree=tree)
    assert done.returncode == 0, done.stderr
    return done.stderr


def kill_amid(folder: Path, *words: str, records: int = 2) -> None:
    """Begin to run the plan into ``folder``, and kill the run when it has a few records."""
    argv = ("./run.sh", *PLAN, *words, "-o", str(folder))
    with proc.started(argv, cwd=places.ROOT) as child:
        wait_until(lambda: count(folder) >= records)
        child.kill()
        assert child.wait(DEADLINE_S) == -signal.SIGKILL, "the run ended before it was killed"


def count(folder: Path) -> int:
    path = folder / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def resume(folder: Path, *words: str) -> str:
    done = start("run", "--resume", str(folder), *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def at_once(folder: Path, dask: Dask) -> None:
    run(folder, "--jobs", "1")


def in_parts(folder: Path, dask: Dask) -> None:
    parts = [folder.with_name(f"part{number}") for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        run(part, "--shard", f"{number}/3", "--overlap", "20%")
    done = start("merge", *map(str, parts), "-o", str(folder))
    assert done.returncode == 0, done.stderr
    assert "in more than one of them, equal to the bit" in done.stderr


def on_a_cluster(folder: Path, dask: Dask) -> None:
    run(folder, "--on", dask.address)
    assert {record.cost is None for record in read_records(folder)} == {False}


def resumed(folder: Path, dask: Dask) -> None:
    kill_amid(folder)
    resume(folder)


def from_a_store(folder: Path, dask: Dask) -> None:
    store = str(folder.with_name("store"))
    run(folder.with_name("first"), FIRSTFLIGHT_STORE=store)
    run(folder, "--verify", "10%", FIRSTFLIGHT_STORE=store)
    stored = load_manifest(folder).stored
    assert stored is not None
    assert (stored.trials, stored.again) == (TRIALS, 1)


@pytest.mark.thorough(but="at_once")
@pytest.mark.nightly(but="at_once|on_a_cluster")
@pytest.mark.parametrize("how", [at_once, in_parts, on_a_cluster, resumed, from_a_store])
def test_the_same_bytes(
    how: Callable[[Path, Dask], None], tmp_path: Path, alone: Path, dask: Dask
) -> None:
    how(tmp_path / "out", dask)
    assert_equal(tmp_path / "out", alone)


def assert_equal(folder: Path, alone: Path) -> None:
    """Records, tables, captures and what else trials leave are equal to the byte."""
    assert_same(folder, alone)
    assert contents(folder) == contents(alone)


def contents(folder: Path) -> dict[str, bytes]:
    # What a guest's console says of the host, such as of a signal that came late, is the machine's.
    files = (p for p in (folder / "trials").rglob("*") if p.is_file() and p.name != "console.log")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.thorough
def test_a_worker_that_is_killed_in_a_load(tmp_path: Path, alone: Path, dask_alone: Dask) -> None:
    argv = ("./run.sh", *PLAN, "--on", dask_alone.address, "-o", str(tmp_path / "out"))
    with proc.started(argv, cwd=places.ROOT) as child:
        wait_until(lambda: count(tmp_path / "out") >= 1)
        dask_alone.kill("worker1")
        assert child.wait(RUN_S) == 0
    assert_equal(tmp_path / "out", alone)


@pytest.mark.nightly
def test_a_scheduler_that_is_killed(tmp_path: Path, alone: Path, dask_alone: Dask) -> None:
    log = tmp_path / "said"
    argv = ("./run.sh", *PLAN, "--on", dask_alone.address, "-o", str(tmp_path / "out"))
    with log.open("wb") as said, proc.started(argv, cwd=places.ROOT, stderr=said) as child:
        wait_until(lambda: count(tmp_path / "out") >= 1)
        dask_alone.kill("scheduler")
        assert child.wait(RUN_S) == 4
    assert "go on with --resume" in log.read_text()
    assert 1 <= count(tmp_path / "out") < TRIALS
    resume(tmp_path / "out")
    assert_equal(tmp_path / "out", alone)


@pytest.mark.nightly
def test_a_run_that_is_killed_goes_on_with_the_cluster(
    tmp_path: Path, alone: Path, dask: Dask
) -> None:
    kill_amid(tmp_path / "out", "--on", dask.address)
    resume(tmp_path / "out", "--on", dask.address)
    assert_equal(tmp_path / "out", alone)


@pytest.mark.thorough
def test_an_interrupt_cancels_what_waits(tmp_path: Path, alone: Path, dask: Dask) -> None:
    argv = ("./run.sh", *PLAN, "--on", dask.address, "-o", str(tmp_path / "out"))
    with proc.started(argv, cwd=places.ROOT) as child:
        wait_until(lambda: count(tmp_path / "out") >= 1)
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE_S) == 130
    resume(tmp_path / "out", "--on", dask.address)
    assert_equal(tmp_path / "out", alone)


@pytest.mark.thorough
def test_a_worker_with_other_code_is_refused_by_name(
    tmp_path: Path, alone: Path, dask_alone: Dask
) -> None:
    """Its repository is a copy, of which one line of what judges trials is another."""
    copy = copied(dask_alone.folder / "copy")
    changed(copy / "testbed/way/judge.py", {"never raises": "will not raise"})
    dask_alone.join("other", FIRSTFLIGHT_HOME=str(copy))
    said = run(tmp_path / "out", "--on", dask_alone.address)
    assert "is refused: differs: code.judge: " in said, said
    assert_equal(tmp_path / "out", alone)


@pytest.mark.thorough
def test_a_worker_that_lies_is_refused_and_nothing_of_it_counts(
    tmp_path: Path, alone: Path, dask_alone: Dask
) -> None:
    """Its repository sends load times that are one percent longer, as a broken machine might."""
    copy = copied(dask_alone.folder / "copy")
    honest = "                entry = pack_entry(record, place, record.cost)\n"
    lie = "                load = replace(record.measured, plt_ms=record.measured.plt_ms * 1.01)\n"
    lie += "                record = replace(record, measured=load)\n"
    changed(copy / "testbed/way/batch.py", {honest: lie + honest})
    for worker in list(dask_alone.workers):
        dask_alone.kill(worker.name)
    dask_alone.join("liar", FIRSTFLIGHT_HOME=str(copy))
    log = tmp_path / "said"
    argv = ("./run.sh", *PLAN, "--on", dask_alone.address, "-o", str(tmp_path / "out"))
    with log.open("wb") as said, proc.started(argv, cwd=places.ROOT, stderr=said) as child:
        wait_until(lambda: "is refused: its result of trial" in log.read_text())
        assert count(tmp_path / "out") == 0
        dask_alone.join("honest")
        assert child.wait(RUN_S) == 0
    assert_equal(tmp_path / "out", alone)


@pytest.mark.nightly
def test_a_worker_that_hangs_loses_its_batch_to_others(
    tmp_path: Path, alone: Path, dask_alone: Dask
) -> None:
    """Its loads begin and never go on.  The run is of a copy that waits for less long."""
    copy = copied(dask_alone.folder / "copy")
    changed(copy / "testbed/way/batch.py", {
        '        self._write(BatchFrame("began"': (
            '        time.sleep(3600)\n        self._write(BatchFrame("began"'
        ),
    })  # fmt: skip
    impatient = copied(dask_alone.folder / "impatient")
    changed(impatient / "testbed/way/cluster.py", {
        "LEASE_S = 90.0": "LEASE_S = 3.0", "_LEASE_COSTS = 20.0": "_LEASE_COSTS = 2.0",
    })  # fmt: skip
    dask_alone.kill("worker2")
    dask_alone.kill("worker3")
    dask_alone.join("hangs", FIRSTFLIGHT_HOME=str(copy))
    said = run(tmp_path / "out", "--on", dask_alone.address, tree=impatient)
    assert " stands still for " in said, said
    assert_equal(tmp_path / "out", alone)


@pytest.mark.nightly
def test_a_worker_with_a_clock_of_another_year(
    tmp_path: Path, alone: Path, dask_alone: Dask
) -> None:
    clock = dask_alone.folder / "clock.so"
    source = tmp_path / "clock.c"
    source.write_text(ANOTHER_YEAR)
    proc.run(("cc", "-shared", "-fPIC", "-O1", "-o", str(clock), str(source)))
    for worker in list(dask_alone.workers):
        dask_alone.kill(worker.name)
    for name in ("early", "again"):
        dask_alone.join(name, LD_PRELOAD=str(clock))
    run(tmp_path / "out", "--on", dask_alone.address)
    assert "1996-" in dask_alone.log("early")
    assert_equal(tmp_path / "out", alone)


def changed(file: Path, texts: Mapping[str, str]) -> None:
    """Replace texts in a file of a copy."""
    text = file.read_text()
    for before, after in texts.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text)


def copied(copy: Path) -> Path:
    """A copy of the work tree, as another machine has one."""
    for name in proc.run(("git", "ls-files"), cwd=places.ROOT).stdout.splitlines():
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(places.ROOT / name, place, follow_symlinks=False)
    return copy


def test_nobody_listens(tmp_path: Path) -> None:
    done = start(*PLAN, "--on", "dask://127.0.0.1:9", "-o", str(tmp_path / "out"))
    assert done.returncode == 3
    assert "nobody listens there" in done.stderr
    assert "dask scheduler --port 9" in done.stderr
    assert not (tmp_path / "out").exists()
