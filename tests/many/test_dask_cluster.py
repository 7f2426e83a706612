"""Dask as tests have it ends with them, however they end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from testbed.base import places, proc
from tests.open_folder import open_folder

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="enclosures of daemons are root's"),
]
SUITE = """
import sys, time
from pathlib import Path
from tests.many.dask_cluster import serving_dask
programs, folder = map(Path, sys.argv[1:])
with serving_dask(programs, folder):
    print("begun", flush=True)
    time.sleep(600)
"""
PATIENCE_S = 30


def test_a_cluster_ends_with_who_started_it(cluster: Path, tmp_path: Path) -> None:
    log = tmp_path / "said"
    with open_folder() as folder, log.open("wb") as said:
        argv = (sys.executable, "-c", SUITE, str(cluster), str(folder))
        with proc.started(argv, cwd=places.ROOT, stdout=said) as suite:
            assert proc.becomes_ready(suite, lambda: log.read_text() == "begun\n")
            assert len(daemons(folder)) >= 3
            os.kill(suite.pid, 9)  # it alone, and not its group
            suite.wait()
            deadline = time.monotonic() + PATIENCE_S
            while daemons(folder):
                assert time.monotonic() < deadline, daemons(folder)
                time.sleep(0.05)


def daemons(folder: Path) -> list[str]:
    """The command lines that name the folder, but for the suite's own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text("utf-8", "replace").split("\0")
        except OSError:
            continue
        if any(word.startswith(f"{folder}/") for word in words):
            found.append(" ".join(words))
    return found
