"""Dask as tests have it: workers who are other users, have caches of their own, and run loads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.base import places, proc
from tests.many.dask_cluster import Dask
from tests.many.running import QUICK, RUN_S

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="workers are other users"),
]

ASK = """
import json, os, sys
from distributed import Client
with Client(sys.argv[1], timeout="30s") as client:
    print(json.dumps(sorted(client.run(os.getuid).values())))
"""


def test_workers_are_other_users(dask: Dask, many: Path) -> None:
    address = dask.address.replace("dask:", "tcp:")
    own = {"HOME": str(dask.folder), "DASK_CONFIG": str(dask.folder / "dask")}
    done = proc.run((str(many / "python"), "-c", ASK, address), env=os.environ | own)
    assert json.loads(done.stdout) == [worker.user for worker in dask.workers]


@pytest.mark.guest
def test_the_user_of_a_worker_runs_loads_with_a_cache_of_its_own(dask: Dask) -> None:
    worker, *others = dask.workers
    argv = (str(places.ROOT / "run.sh"), "run", QUICK, "-n", "1", "-o", str(worker.folder / "out"))
    done = proc.run(
        worker.argv(*argv), cwd=places.ROOT, env=os.environ | worker.environment, check=False,
        timeout_s=RUN_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    records = worker.folder / "out" / "records.jsonl"
    assert records.stat().st_uid == worker.user
    assert [json.loads(line)["outcome"] for line in records.open()] == ["ok", "ok"]
    assert (worker.cache / "pages").stat().st_uid == worker.user
    assert not any((other.cache / "pages").exists() for other in others)


def test_a_worker_may_be_lost(dask_alone: Dask) -> None:
    scheduler = dask_alone.processes["scheduler"]
    assert "Remove worker" not in dask_alone.log("scheduler")
    dask_alone.kill("worker1")
    is_gone = proc.becomes_ready(scheduler, lambda: "Remove worker" in dask_alone.log("scheduler"))
    assert is_gone, dask_alone.log("scheduler")
