"""Slurm's job arrays run each part of a plan as a job, and nothing of Slurm is left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.many.slurm import Slurm, serving_slurm
from tests.open_folder import open_folder

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root"),
]


@pytest.mark.nightly
def test_an_array_runs(slurm: Slurm, tmp_path: Path) -> None:
    job = "#!/bin/sh\necho part $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT on $SLURMD_NODENAME\n"
    (tmp_path / "job.sh").write_text(job)
    done = slurm.ask("sbatch", "--wait", "--array=1-4", "job.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + slurm.logs()
    said = [path.read_text().split(" on ") for path in sorted(tmp_path.glob("slurm-*.out"))]
    assert [part for part, _ in said] == [f"part {number}/4" for number in range(1, 5)]
    assert {node.strip() for _, node in said} == set(slurm.nodes)


def test_a_job_ends_with_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\necho begun >begun\nsleep 1723.5\n")
    with open_folder() as folder, serving_slurm(folder, nodes=1) as slurm:
        assert slurm.ask("sbatch", "job.sh", cwd=tmp_path).returncode == 0
        assert become_true((tmp_path / "begun").exists), slurm.logs()
        assert become_true(lambda: running("sleep", "1723.5"))
    assert become_true(lambda: not running("sleep", "1723.5") and not running("slurmstepd"))


def become_true(is_so: Callable[[], bool]) -> bool:
    """Whether it is so, in a while at the latest."""
    deadline = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def running(*words: str) -> bool:
    """Whether any process's command line begins with these words, whatever its folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            argv = (process / "cmdline").read_text("utf-8", "replace").split("\0")
            if [Path(argv[0]).name, *argv[1 : len(words)]] == list(words):
                return True
    return False
