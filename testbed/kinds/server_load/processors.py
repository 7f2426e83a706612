"""Processors of a load in real time: one for the server, another for the generator.

Source: proc_stat(5), whose line for a processor counts all that it did, interrupts included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import MissingError

STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Processors:
    """The numbers of the processors that the two programs run on."""

    server: int
    generator: int


def choose_processors() -> Processors:
    """Return two processors of those that this process may use.

    Raises:
        MissingError: there is only one, and what generates load would slow the server down.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise MissingError("a load on a server needs two processors in real time; here is one")
    return Processors(server=allowed[-1], generator=allowed[0])


def read_ticks(processor: int, stat: Path = STAT) -> tuple[int, int]:
    """Return how many ticks ``processor`` was busy so far, and how many there were."""
    name = f"cpu{processor} "
    line = next(line for line in stat.read_text().splitlines() if line.startswith(name))
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
    busy = user + nice + system + irq + softirq
    return busy, busy + idle + iowait + steal


@contextmanager
def watching(processor: int, after_s: float, for_s: float) -> Iterator[Future[float]]:
    """Watch ``processor`` while the block runs: its busy share in percent, of ``for_s`` seconds.

    They begin ``after_s`` seconds from now; the result is there when they are over.
    """

    def watch() -> float:
        time.sleep(after_s)
        busy, total = read_ticks(processor)
        time.sleep(for_s)
        later, more = read_ticks(processor)
        return 100 * (later - busy) / max(1, more - total)

    with ThreadPoolExecutor(1, thread_name_prefix="processor") as thread:
        yield thread.submit(watch)
