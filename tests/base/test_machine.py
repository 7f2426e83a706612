"""Readings of a machine from files that look like /proc."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.machine import (
    LIMITS,
    describe_machine,
    describe_queues,
    judge_machine,
    read_queued,
    read_sample,
)


def write_proc(folder: Path, cpu: str, processes: dict[str, str]) -> Path:
    """A /proc with a machine's processor times in ticks and some processes."""
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"cpu  {cpu} 0 0\ncpu0 1 2 3\n")
    (folder / "loadavg").write_text("0.50 0.40 0.30 3/120 999\n")
    for pid, stat in processes.items():
        (folder / pid).mkdir(exist_ok=True)
        (folder / pid / "stat").write_text(stat)
    return folder


def stat(pid: int, utime: int, stime: int, cutime: int, cstime: int) -> str:
    """One process with a name that a naive reader trips over."""
    return f"{pid} (a) R (b c) S 1 1 1 0 -1 0 0 0 0 0 {utime} {stime} {cutime} {cstime} 20 0 1\n"


def test_shares_of_all_processors(tmp_path: Path) -> None:
    before = read_sample(write_proc(tmp_path, "100 0 50 1000 10 5 5 0", {"1": stat(1, 5, 5, 0, 0)}))
    processes = {"1": stat(1, 10, 5, 20, 5), "7": stat(7, 10, 0, 0, 0)}
    after = read_sample(write_proc(tmp_path, "160 0 70 1100 10 10 5 15", processes))
    found = describe_machine(before, after, tmp_path)
    # 200 ticks: 80 busy, 40 of them ours (the ended children's, too), 15 stolen.
    assert found["cpu_s"] == pytest.approx(0.4)
    assert found["others_pct"] == pytest.approx(20.0)
    assert found["steal_pct"] == pytest.approx(7.5)
    assert (found["load_1min"], found["runnable"]) == (0.5, 3.0)


def test_nobody_else_is_never_less_than_nothing(tmp_path: Path) -> None:
    before = read_sample(write_proc(tmp_path, "0 0 0 0 0 0 0 0", {}))
    after = read_sample(write_proc(tmp_path, "10 0 0 90 0 0 0 0", {"1": stat(1, 12, 0, 0, 0)}))
    assert describe_machine(before, after, tmp_path)["others_pct"] == 0.0


def test_no_time_between_two_samples(tmp_path: Path) -> None:
    sample = read_sample(write_proc(tmp_path, "1 1 1 1 1 1 1 1", {}))
    found = describe_machine(sample, sample, tmp_path)
    assert (found["steal_pct"], found["others_pct"]) == (0.0, 0.0)


def test_this_machine_can_be_read() -> None:
    sample = read_sample()
    assert sample.total_s > sample.busy_s > 0
    assert sample.ours_s > 0


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit(name: str) -> None:
    limit, unit, _ = LIMITS[name]
    assert judge_machine({name: limit}) == ()
    (sentence,) = judge_machine({name: limit + 1})
    assert f"(limit {limit:g} {unit})" in sentence


def test_who_waited_for_a_processor_in_vain(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "schedstat").write_text("900000000 120000000 55\n")
    assert read_queued(7, tmp_path) == 0.12
    with pytest.raises(OSError, match="schedstat"):
        read_queued(8, tmp_path)
    assert describe_queues(2000.0, 0.11, 0.002) == pytest.approx(
        {"client_queued_ms": 110.0, "client_queued_pct": 5.5, "server_queued_ms": 2.0,
         "server_queued_pct": 0.1}
    )  # fmt: skip
    assert set(describe_queues(2000.0, None, 0.0)) == {"server_queued_ms", "server_queued_pct"}
    (reported,) = judge_machine(describe_queues(2000.0, 0.44, 0.002))
    assert reported == (
        "a thread of the client waited for a processor 22 % of the load (limit 20 % of the load)"
    )
    assert judge_machine(describe_queues(2000.0, 0.39, 0.002)) == ()


def test_a_hypervisor_is_judged_by_what_reached_the_trial() -> None:
    idle = {"steal_pct": 3.6, "others_pct": 2.0, "worst_lateness_ms": 0.4}
    idle |= describe_queues(2000.0, 0.01, 0.001)
    assert judge_machine(idle) == ()
    (reported,) = judge_machine(idle | {"worst_lateness_ms": 6.0})
    assert reported.startswith("a packet left the link late by 6 ms")


def test_a_process_that_had_to_wait() -> None:
    """Two that want the processor that this one is given: each waits."""
    allowed = os.sched_getaffinity(0)
    one = {min(allowed)}
    os.sched_setaffinity(0, one)
    try:
        argv = (sys.executable, "-c", "while True: pass")
        with proc.started(argv) as burner, proc.started(argv) as other:
            before = read_queued(burner.pid)
            deadline = time.monotonic() + 60
            while read_queued(burner.pid) - before < 0.05:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert other.poll() is None
    finally:
        os.sched_setaffinity(0, allowed)


def test_what_was_not_read_is_not_judged() -> None:
    assert judge_machine({}) == ()
    assert judge_machine({"cpu_s": 1e9}) == ()
