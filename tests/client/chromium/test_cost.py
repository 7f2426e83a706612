"""What a load costs the browser, from what it and the kernel say."""

from __future__ import annotations

from pathlib import Path

from testbed.client.chromium.cost import (
    Spent,
    Stopwatch,
    cost_of,
    cpu_of,
    longest_queued,
    metrics_of,
    read_queues,
)

METRICS = {"NavigationStart": 9.0, "TaskDuration": 0.5, "ScriptDuration": 0.25}


def write_queues(proc: Path, **threads: int) -> None:
    for name, queued_ns in threads.items():
        process, _, thread = name.removeprefix("t").partition("_")
        folder = proc / process / "task" / thread
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"1000 {queued_ns} 7\n")


def test_answers_of_the_browser() -> None:
    processes = [{"id": 7, "cpuTime": 0.25}, {"id": 9, "cpuTime": 0.5}]
    assert cpu_of({"processInfo": processes}) == {7: 0.25, 9: 0.5}
    assert metrics_of({"metrics": [{"name": "TaskDuration", "value": 0.5}]}) == {
        "TaskDuration": 0.5
    }


def test_in_virtual_time_only_the_browsers_own_account() -> None:
    cost = cost_of(METRICS, {7: 0.25, 9: 0.5})
    assert cost == {"cpu_s": 0.75, "task_s": 0.5, "script_s": 0.25}


def test_in_real_time_what_was_spent_before_does_not_count(tmp_path: Path) -> None:
    write_queues(tmp_path, t7_7=1_000_000_000, t7_8=0)
    before = Spent({7: 0.25}, read_queues([7, 9], tmp_path), tmp_path)
    write_queues(tmp_path, t7_7=1_500_000_000, t7_8=250_000_000, t9_9=750_000_000)
    cost = cost_of(METRICS, {7: 0.5, 9: 0.5}, before)
    assert (cost["cpu_s"], cost["load_cpu_s"], cost["queued_s"]) == (1.0, 0.75, 0.75)


def test_threads_that_have_ended_are_left_out(tmp_path: Path) -> None:
    write_queues(tmp_path, t7_7=5)
    (tmp_path / "7" / "task" / "8").mkdir()
    assert read_queues([7, 8], tmp_path) == {"7/7": 5e-9}
    assert longest_queued({"7/7": 5e-9}, {}) == 0.0


def test_a_stopwatch_in_virtual_time_says_nothing() -> None:
    for real_time, names in ((False, set()), (True, {"launch_s", "wall_s", "driver_cpu_s"})):
        stopwatch = Stopwatch(real_time=real_time)
        stopwatch.split("launch_s")
        stopwatch.split()
        assert set(stopwatch.read()) == names
