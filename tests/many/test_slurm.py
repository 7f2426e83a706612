"""Slurm's job arrays run each part of a plan as a job, and nothing of Slurm is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.many.slurm import Slurm, serving_slurm
from tests.open_folder import open_folder

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd needs root"),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """A cluster of two nodes."""
    with open_folder() as folder, serving_slurm(folder) as slurm:
        yield slurm


def test_an_array_runs(slurm: Slurm, tmp_path: Path) -> None:
    job = "#!/bin/sh\necho part $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT on $SLURMD_NODENAME\n"
    (tmp_path / "job.sh").write_text(job)
    done = slurm.ask("sbatch", "--wait", "--array=1-4", "job.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + slurm.logs()
    said = [path.read_text().split(" on ") for path in sorted(tmp_path.glob("slurm-*.out"))]
    assert [part for part, _ in said] == [f"part {number}/4" for number in range(1, 5)]
    assert {node.strip() for _, node in said} == set(slurm.nodes)
