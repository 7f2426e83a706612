"""Load of the machine while something is measured in real time, and its limits.

A trial is judged by what reached it: how late packets left the link, and how long the client and
the server waited for a processor.  What may have been the cause is kept beside it.

Sources: proc_stat(5), proc_pid_stat(5), proc_loadavg(5); Linux, Documentation/scheduler/
sched-stats.rst for /proc/<pid>/schedstat.
Read inside a PID namespace of its own: the processes that are seen there are those of the trial,
while /proc/stat and /proc/loadavg are about the whole machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
FIFO_PRIORITY = 10

MOST_LATENESS_MS = 5.0
"""A packet that leaves the link later than this makes a load longer than the link says."""
MOST_CLIENT_QUEUED_PCT = 20.0
"""Time that one thread was ready to run and did not, of the load's.  A browser has many threads,
and mostly they wait while the network is waited for, too: up to here loads get no longer."""
MOST_SERVER_QUEUED_PCT = 5.0
"""The same of the server, which has one thread, and the client waits for it."""

_WAITED = "waited for a processor"
LIMITS: Mapping[str, tuple[float, str, str]] = {
    "worst_lateness_ms": (MOST_LATENESS_MS, "ms", "a packet left the link late by"),
    "stray_packets": (0.0, "packets", "around the link went"),
    "client_queued_pct": (
        MOST_CLIENT_QUEUED_PCT,
        "% of the load",
        f"a thread of the client {_WAITED}",
    ),
    "server_queued_pct": (MOST_SERVER_QUEUED_PCT, "% of the load", f"the server {_WAITED}"),
    "worker_queued_pct": (MOST_CLIENT_QUEUED_PCT, "% of the time", f"an ordinary thread {_WAITED}"),
}


@dataclass(frozen=True, slots=True)
class CpuSample:
    """Seconds so far: ``wall_s`` by the clock, the rest of processor time, of all processors.

    ``total_s`` is all that there was, ``busy_s`` what processes used, ``ours_s`` of it what the
    processes seen here used, ended ones included; ``steal_s`` went to other machines.
    """

    wall_s: float
    total_s: float
    busy_s: float
    steal_s: float
    ours_s: float


def read_sample(proc: Path = PROC, *, ours: bool = True) -> CpuSample:
    """Return where the processors' time has gone so far; without ``ours`` all of it is others'."""
    tick = os.sysconf("SC_CLK_TCK")
    words = (proc / "stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, idle, iowait, irq, softirq, steal = (int(word) / tick for word in words)
    busy = user + nice + system
    total = busy + idle + iowait + irq + softirq + steal
    return CpuSample(time.monotonic(), total, busy, steal, _read_ours(proc) / tick if ours else 0.0)


def _read_ours(proc: Path) -> int:
    """Read the ticks of all processes seen here and of the children that they waited for."""
    ticks = 0
    for stat in proc.glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # ended meanwhile
            continue
        # The name may hold anything, even a parenthesis; after the last one: field 3 and on.
        fields = text.rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks


def read_queued(process: int | str, proc: Path = PROC) -> float:
    """Return seconds that a process's first thread was ready to run so far, and did not.

    ``process`` is its id, or ``thread-self`` for the thread that asks.

    Raises:
        OSError: it has ended.
    """
    return int((proc / str(process) / "schedstat").read_text().split()[1]) / 1e9


@contextmanager
def real_time_priority() -> Iterator[bool]:
    """Run the block with a real-time priority (sched(7)); yield whether it has one."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))
    except PermissionError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def describe_queues(plt_ms: float, client_s: float | None, server_s: float) -> dict[str, float]:
    """Return how long client and server waited for a processor during a load, as a record keeps it.

    Args:
        plt_ms: how long the load took.
        client_s: of that of its threads that waited longest; ``None`` when it does not say.
        server_s: of the server.
    """
    seconds = {"server": server_s} | ({} if client_s is None else {"client": client_s})
    queued = {f"{end}_queued_ms": 1e3 * waited for end, waited in seconds.items()}
    return queued | {
        f"{end}_queued_pct": _share(1e3 * waited, plt_ms) for end, waited in seconds.items()
    }


def describe_machine(before: CpuSample, after: CpuSample, proc: Path = PROC) -> dict[str, float]:
    """Return what the machine did between two samples, as a record keeps it.

    ``steal_pct`` and ``others_pct`` are shares of all processors' time, ``cpu_s`` is ours,
    ``load_1min`` and ``runnable`` are /proc/loadavg's.
    """
    total = after.total_s - before.total_s
    ours = after.ours_s - before.ours_s
    others = max(0.0, after.busy_s - before.busy_s - ours)
    loads = (proc / "loadavg").read_text().split()
    return {
        "steal_pct": _share(after.steal_s - before.steal_s, total),
        "others_pct": _share(others, total),
        "cpu_s": ours,
        "wall_s": after.wall_s - before.wall_s,
        "load_1min": float(loads[0]),
        "runnable": float(loads[3].partition("/")[0]),
    }


def judge_machine(machine: Mapping[str, float]) -> tuple[str, ...]:
    """Return a sentence for each reading beyond its limit."""
    return tuple(
        f"{words} {machine[name]:.3g} {unit} (limit {limit:g} {unit})"
        for name, (limit, unit, words) in LIMITS.items()
        if machine.get(name, 0.0) > limit
    )


def _share(part: float, total: float) -> float:
    return 100.0 * part / total if total > 0 else 0.0
