"""The same bytes, however a plan is run: at once, in parts, on a cluster, resumed, or from a store.

And on a cluster whatever happens to it: what is lost runs again, and nothing counts twice.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from testbed.base import places, proc
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from tests.many.dask_cluster import Dask, serving_dask
from tests.many.running import QUICK, RUN_S, assert_same, start
from tests.open_folder import open_folder

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.guest,
    pytest.mark.skipif(os.geteuid() != 0, reason="enclosures of daemons are root's"),
]
PLAN = ("run", QUICK, "-n", "4")
TRIALS = 8
DEADLINE_S = 120
Cluster = Callable[[], Dask]
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


@pytest.fixture
def ready(request: pytest.FixtureRequest) -> Cluster:
    """Starts a cluster for who needs one."""
    return lambda: cast("Dask", request.getfixturevalue("dask"))


def run(folder: Path, *words: str, **environment: str) -> str:
    """Run the plan into ``folder`` to its end, and return what was said."""
    done = start(*PLAN, *words, "-o", str(folder), environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def kill_amid(folder: Path) -> None:
    """Begin to run the plan into ``folder``, and kill the run when it has a few records."""
    with proc.started(("./run.sh", *PLAN, "-o", str(folder)), cwd=places.ROOT) as child:
        wait_until(lambda: count(folder) >= 2)
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


def on_dask(folder: Path, dask: Dask, *words: str) -> tuple[str, ...]:
    """Our example's command, for two parts."""
    script = "examples/many-machines/on_dask.py"
    config, *options = PLAN[1:]
    return (str(dask.programs / "python"), script, dask.address, "2", config, str(folder),
            *options, *words)  # fmt: skip


def count_parts(folder: Path) -> list[int]:
    return [count(folder.with_name(f"{folder.name}.parts") / part) for part in "12"]


def at_once(folder: Path, cluster: Cluster) -> None:
    run(folder, "--jobs", "1")


def in_parts(folder: Path, cluster: Cluster) -> None:
    parts = [folder.with_name(f"part{number}") for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        run(part, "--shard", f"{number}/3", "--overlap", "20%")
    done = start("merge", *map(str, parts), "-o", str(folder))
    assert done.returncode == 0, done.stderr
    assert "in more than one of them, equal to the bit" in done.stderr


def on_a_cluster(folder: Path, cluster: Cluster) -> None:
    dask = cluster()
    done = proc.run(
        on_dask(folder, dask, "--overlap", "20%"), cwd=places.ROOT, env=dask.environment,
        timeout_s=RUN_S,
    )  # fmt: skip
    assert "in more than one of them, equal to the bit" in done.stderr
    assert {record.cost is None for record in read_records(folder)} == {False}


def resumed(folder: Path, cluster: Cluster) -> None:
    kill_amid(folder)
    done = start("run", "--resume", str(folder))
    assert done.returncode == 0, done.stderr


def from_a_store(folder: Path, cluster: Cluster) -> None:
    store = str(folder.with_name("store"))
    run(folder.with_name("first"), FIRSTFLIGHT_STORE=store)
    run(folder, "--verify", "10%", FIRSTFLIGHT_STORE=store)
    stored = load_manifest(folder).stored
    assert stored is not None
    assert (stored.trials, stored.again) == (TRIALS, 1)


@pytest.mark.nightly(but="at_once")
@pytest.mark.parametrize("how", [at_once, in_parts, on_a_cluster, resumed, from_a_store])
def test_the_same_bytes(
    how: Callable[[Path, Cluster], None], tmp_path: Path, alone: Path, ready: Cluster
) -> None:
    how(tmp_path / "out", ready)
    assert_equal(tmp_path / "out", alone)


def assert_equal(folder: Path, alone: Path) -> None:
    """Records, tables, captures and what else trials leave are equal to the byte."""
    assert_same(folder, alone)
    assert contents(folder) == contents(alone)


def contents(folder: Path) -> dict[str, bytes]:
    # What a guest's console says of the host, such as of a signal that came late, is the machine's.
    files = (p for p in (folder / "trials").rglob("*") if p.is_file() and p.name != "console.log")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def go_on(folder: Path, dask: Dask) -> None:
    """Give the same command again."""
    done = proc.run(
        on_dask(folder, dask), cwd=places.ROOT, env=dask.environment, check=False, timeout_s=RUN_S
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_a_worker_that_is_killed_in_a_load(tmp_path: Path, alone: Path, dask_alone: Dask) -> None:
    out = tmp_path / "out"
    argv = on_dask(out, dask_alone)
    with proc.started(argv, cwd=places.ROOT, env=dask_alone.environment) as child:
        wait_until(lambda: min(count_parts(out)) >= 1)
        dask_alone.kill("worker1")
        assert child.wait(RUN_S) == 0
    assert_equal(out, alone)


@pytest.mark.nightly
def test_a_scheduler_that_is_killed(
    tmp_path: Path, alone: Path, dask_alone: Dask, many: Path
) -> None:
    out, log = tmp_path / "out", tmp_path / "said"
    argv = on_dask(out, dask_alone)
    with (
        log.open("wb") as said,
        proc.started(argv, cwd=places.ROOT, env=dask_alone.environment, stderr=said) as child,
    ):
        wait_until(lambda: min(count_parts(out)) >= 1)
        dask_alone.kill("scheduler")
        assert child.wait(RUN_S) == 4
    assert "run this again to go on" in log.read_text()
    assert sum(count_parts(out)) < TRIALS
    assert not out.exists()
    with open_folder() as folder, serving_dask(dask_alone.programs, folder) as another:
        go_on(out, another)
    assert_equal(out, alone)


@pytest.mark.nightly
def test_a_run_that_is_interrupted_goes_on(tmp_path: Path, alone: Path, dask: Dask) -> None:
    out = tmp_path / "out"
    argv = on_dask(out, dask)
    with proc.started(argv, cwd=places.ROOT, env=dask.environment) as child:
        wait_until(lambda: min(count_parts(out)) >= 1)
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE_S) != 0
    assert not out.exists()
    go_on(out, dask)
    assert_equal(out, alone)


@pytest.mark.nightly
def test_a_machine_with_a_clock_of_another_year(tmp_path: Path, alone: Path) -> None:
    clock, source = tmp_path / "clock.so", tmp_path / "clock.c"
    source.write_text(ANOTHER_YEAR)
    proc.run(("cc", "-shared", "-fPIC", "-O1", "-o", str(clock), str(source)))
    run(tmp_path / "out", LD_PRELOAD=str(clock))
    assert load_manifest(tmp_path / "out").created_utc.startswith("1996-")
    assert_equal(tmp_path / "out", alone)
