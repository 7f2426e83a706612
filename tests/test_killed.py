"""A run that is killed or interrupted from outside, as a process of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.places import CONFIGS, ROOT
from testbed.results.records import RECORDS_FILE, read_records

SECONDS = 0.5  # of a trial in runs that do not come to their end
QUICK_S = 0.05
REPETITIONS = 24
KILLS = 5
TRIALS = 2 * REPETITIONS
DEADLINE_S = 60.0


def hallway(base: Path, seconds: float, *words: str) -> list[str]:
    return [sys.executable, "-m", "tests.hallway", str(base), str(seconds), *words]


def first(base: Path) -> list[str]:
    config = str(CONFIGS / "quick.toml")
    out = str(base / "out")
    return hallway(base, SECONDS, "run", config, "-n", str(REPETITIONS), "--jobs", "2", "-o", out)


def again(base: Path, seconds: float = SECONDS) -> list[str]:
    return hallway(base, seconds, "run", "--resume", str(base / "out"), "--jobs", "2")


def whole_lines(base: Path) -> list[bytes]:
    path = base / "out" / RECORDS_FILE
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def wait_for_records(base: Path, child: proc.Process, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while len(whole_lines(base)) < count and child.poll() is None:
        assert time.monotonic() < deadline, "the run writes no records"
        time.sleep(0.005)


def processes_with(word: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(process.name)
    return found


@pytest.mark.thorough
@pytest.mark.nightly(but="^0$")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_kill_9_loses_and_repeats_no_record(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    kept: list[bytes] = []
    command = first(tmp_path)
    for _ in range(KILLS):
        with proc.started(command, cwd=ROOT) as child:
            wait_for_records(tmp_path, child, len(kept) + 1)
            time.sleep(chance.uniform(0, SECONDS))
            child.kill()
            assert child.wait(DEADLINE_S) == -signal.SIGKILL, "the run ended before it was killed"
        lines = whole_lines(tmp_path)
        assert lines[: len(kept)] == kept
        kept = lines
        command = again(tmp_path)
    done = proc.run(again(tmp_path, QUICK_S), cwd=ROOT)
    assert done.returncode == 0
    assert set(kept) <= set(whole_lines(tmp_path))
    records = read_records(tmp_path / "out")
    planned = json.loads((tmp_path / "out" / "manifest.json").read_text())["trials"]
    assert [r.trial_id for r in records] == planned
    assert len(records) == TRIALS
    assert {(r.outcome, r.attempt) for r in records} == {("ok", 1)}
    assert sorted(p.name for p in (tmp_path / "out" / "trials").iterdir()) == sorted(planned)


@pytest.mark.nightly(but="^2$")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_process_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    sleep = f"3{os.getpid()}.{number:d}"  # nobody else's sleep
    monkeypatch.setenv("HALLWAY_SLEEP", sleep)
    errors = tmp_path / "errors"
    with (
        errors.open("wb") as stream,
        proc.started(first(tmp_path), cwd=ROOT, stderr=stream) as child,
    ):
        wait_for_records(tmp_path, child, 2)
        deadline = time.monotonic() + DEADLINE_S
        while not processes_with(sleep):  # between two trials there is none
            assert time.monotonic() < deadline
        child.send_signal(number)
        assert child.wait(DEADLINE_S) == 130
        assert processes_with(sleep) == []
    assert f"go on with --resume {tmp_path / 'out'}" in errors.read_text()
    records = read_records(tmp_path / "out")
    assert 2 <= len(records) < TRIALS
    trials = sorted(p.name for p in (tmp_path / "out" / "trials").iterdir())
    assert trials == sorted(r.trial_id for r in records)
    assert proc.run(again(tmp_path, QUICK_S), cwd=ROOT).returncode == 0
    assert len(read_records(tmp_path / "out")) == TRIALS
