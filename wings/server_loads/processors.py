"""Processors of a load in real time: one for each worker of the server, one for the generator.

Source: proc_stat(5), whose line for a processor counts all that it did, interrupts included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.namespace import Namespace

STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Processors:
    """The numbers of the processors that the two programs run on."""

    server: tuple[int, ...]
    generator: int


def choose_processors(workers: int) -> Processors:
    """Return processors of those that this process may use, all of them different.

    Raises:
        MissingError: there are too few: what generates load would slow the server down, or one
            worker another.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) <= workers:
        raise MissingError(
            f"a load on a server of {workers} worker{'s' if workers > 1 else ''} needs "
            f"{workers + 1} processors in real time; here {'is' if len(allowed) == 1 else 'are'} "
            f"{len(allowed)}; lower workers, or use the virtual kernel: --kernel virtual"
        )
    return Processors(server=tuple(allowed[-workers:]), generator=allowed[0])


def mask_of(processors: Iterable[int]) -> int:
    """Return a mask with the bit of each of ``processors`` set."""
    return sum(1 << number for number in processors)


def read_ticks(processors: Sequence[int], stat: Path = STAT) -> tuple[int, int]:
    """Return how many ticks ``processors`` were busy so far, and how many there were."""
    names = {f"cpu{number}" for number in processors}
    busy = whole = 0
    for line in stat.read_text().splitlines():
        name, *ticks = line.split()
        if name in names:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, ticks[:8])
            working = user + nice + system + irq + softirq
            busy += working
            whole += working + idle + iowait + steal
    return busy, whole


@contextmanager
def receiving(namespace: Namespace, device: str, processors: Sequence[int]) -> Iterator[None]:
    """Have the server's processors take what comes in by ``device``, as a network card's would.

    A packet that came over a pair of virtual devices is otherwise taken by the processor that sent
    it, and no work of the server's kernel on it would be seen (Receive Packet Steering:
    Documentation/networking/scaling.rst).  The device and its setting are the namespace's.

    Raises:
        MissingError: this kernel cannot steer packets.
    """
    before = _steer(namespace, device, None)
    _steer(namespace, device, f"{mask_of(processors):x}")
    try:
        yield
    finally:
        _steer(namespace, device, before)


def _steer(namespace: Namespace, device: str, mask: str | None) -> str:
    """Write the mask of processors, unless it is ``None``, and return the one that was read."""
    path = f"/sys/class/net/{device}/queues/rx-0/rps_cpus"
    # A program of its own: /sys shows the devices of the namespace in which it was mounted.
    words = ("cat", path) if mask is None else ("sh", "-c", f"echo {mask} > {path}")
    done = proc.run((*namespace.prefix, *words), check=False)
    if done.returncode != 0:
        raise MissingError(
            "this kernel cannot have chosen processors take a device's packets "
            f"({done.stderr.strip()}): CONFIG_RPS; use the virtual kernel: --kernel virtual"
        )
    return done.stdout.strip()


@contextmanager
def watching(processors: Sequence[int], after_s: float, for_s: float) -> Iterator[Future[float]]:
    """Watch ``processors`` as the block runs: their mean busy share in percent, of ``for_s`` s.

    They begin ``after_s`` seconds from now; the result is there when they are over.
    """

    def watch() -> float:
        time.sleep(after_s)
        busy, total = read_ticks(processors)
        time.sleep(for_s)
        later, more = read_ticks(processors)
        return 100 * (later - busy) / max(1, more - total)

    with ThreadPoolExecutor(1, thread_name_prefix="processor") as thread:
        yield thread.submit(watch)
