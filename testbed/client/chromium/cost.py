"""What a load costs the browser: CPU time of its processes, and what its main thread was busy with.

Source: Chrome DevTools Protocol, SystemInfo.getProcessInfo (CPU seconds since a process began) and
Performance.getMetrics (seconds of wall time in tasks, script, layout, style, compiling); Linux,
Documentation/scheduler/sched-stats.rst (/proc/<pid>/task/<tid>/schedstat).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

DURATIONS = {
    "task_s": "TaskDuration",
    "script_s": "ScriptDuration",
    "layout_s": "LayoutDuration",
    "style_s": "RecalcStyleDuration",
    "compile_s": "V8CompileDuration",
}


class Stopwatch:
    """What parts of a load take of the wall clock, in seconds, and the driver of the processor.

    In virtual time it reads no clock: one reading, 256 ns, moves a result, and a start takes none.
    """

    def __init__(self, *, real_time: bool) -> None:
        self._real_time = real_time
        self._spent: dict[str, float] = {}
        if real_time:
            self._began = self._last = time.monotonic()
            self._used = time.process_time()

    def split(self, name: str | None = None) -> None:
        """Say what the time since the last split, or since the begin, was for."""
        if self._real_time:
            now = time.monotonic()
            if name is not None:
                self._spent[name] = now - self._last
            self._last = now

    def read(self) -> dict[str, float]:
        """Return all splits, ``wall_s`` and ``driver_cpu_s``; nothing in virtual time."""
        if not self._real_time:
            return {}
        used, now = time.process_time(), time.monotonic()
        return self._spent | {"wall_s": now - self._began, "driver_cpu_s": used - self._used}


def cpu_of(answer: Mapping[str, Any]) -> dict[int, float]:
    """Return the CPU seconds of each process of the browser so far, by its own process ids."""
    return {process["id"]: process["cpuTime"] for process in answer["processInfo"]}


def metrics_of(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return the browser's own account of the page, by name."""
    return {metric["name"]: metric["value"] for metric in answer["metrics"]}


def read_queues(processes: Iterable[int], proc: Path) -> dict[str, float]:
    """Read how many seconds each thread was ready to run so far, and did not.

    The key has process and thread; ``proc`` is the /proc of the namespace that their ids are of.
    """
    queued = {}
    for process in processes:
        # What ends meanwhile is left out.
        try:
            threads = list((proc / str(process) / "task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                text = (thread / "schedstat").read_text("ascii")
            except OSError:
                continue
            queued[f"{process}/{thread.name}"] = int(text.split()[1]) / 1e9
    return queued


def longest_queued(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Return the wait of the thread that waited longest between two readings, in seconds."""
    waited = (seconds - before.get(thread, 0.0) for thread, seconds in after.items())
    return max((0.0, *waited))


class Spent(NamedTuple):
    """What the browser had spent before a navigation: ``cpu`` by process, ``queued`` by thread.

    ``proc`` is the /proc of its process namespace.
    """

    cpu: Mapping[int, float]
    queued: Mapping[str, float]
    proc: Path


def cost_of(
    metrics: Mapping[str, float], after: Mapping[int, float], before: Spent | None = None
) -> dict[str, float]:
    """Return what the load event cost, in seconds.

    Args:
        metrics: the page's after the load event.
        after: CPU of the processes since they began, after the load event.
        before: in real time, for ``load_cpu_s`` and ``queued_s``.
    """
    cost = {"cpu_s": sum(after.values())}
    cost |= {ours: metrics[theirs] for ours, theirs in DURATIONS.items() if theirs in metrics}
    if before is not None:
        earlier = sum(before.cpu.get(process, 0.0) for process in after)
        cost["load_cpu_s"] = cost["cpu_s"] - earlier
        cost["queued_s"] = longest_queued(before.queued, read_queues(after, before.proc))
    return cost
