"""Workers of a test run: how many there are, which tests stay together, and how they end.

A plugin of pytest and of pytest-xdist, which runs the tests of one file in one worker, and so in
their order: what a file builds or records once is built once.  Files that look at the state of the
machine are one such unit, too.  docs/decisions/tests-and-bench.md says why.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import NodeManager

MOST = 4
"""Workers; the longest files, and what is collected by each of them, are the limit then."""
WORKER_BYTES = 2 << 30
"""Memory that is free for each: two guests of 1 GB at most, of which a browser's use half."""
LONG = ("slow", "guest", "browser")
"""Marks of tests that take long: their files are begun first."""
TEARDOWN_S = 60
"""After an interrupt, until a worker is killed that has not undone what its test did."""
MACHINE = (
    "tests/docker/test_image.py",
    "tests/kernel/run/test_host.py",
    "tests/kernel/run/test_host_command.py",
    "tests/kernel/run/test_host_shell.py",
    "tests/kernel/run/test_host_trial.py",
    "tests/kernel/run/test_virtual_mechanisms.py",
    "tests/kinds/scenario/test_host.py",
    "tests/kinds/server_load/test_host_load.py",
    "tests/server/mechanisms/test_host.py",
)
"""Files whose tests see, or may disturb, what others of them leave on the machine: one worker."""
TERMINAL = ("COLUMNS", "LINES")
"""Set by a shell or for a worker: what programs print in a test is no matter of either."""
MEMINFO = Path("/proc/meminfo")


class FilesAndMachine(LoadFileScheduling):
    """Give a worker a whole file, or all files of the machine, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "machine" if file in MACHINE else file


def read_available(meminfo: Path = MEMINFO) -> int:
    """Return the bytes of memory that processes may still take (proc(5))."""
    lines = (line.split() for line in meminfo.read_text().splitlines())
    return 1024 * next(int(words[1]) for words in lines if words[0] == "MemAvailable:")


def fitting_workers(cores: int, available: int) -> int:
    """Return how many workers ``cores`` and ``available`` bytes are enough for; at least one."""
    return max(1, min(MOST, cores, available // WORKER_BYTES))


def pytest_xdist_auto_num_workers() -> int:
    return fitting_workers(len(os.sched_getaffinity(0)), read_available())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndMachine:
    NodeManager.EXIT_TIMEOUT = TEARDOWN_S
    config.option.loadscopereorder = False  # it would begin with the files that have most tests
    return FilesAndMachine(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = {item.path for item in items if any(item.get_closest_marker(name) for name in LONG)}
    items.sort(key=lambda item: item.path not in long)


class Worker:
    """What holds in a worker only."""

    def pytest_keyboard_interrupt(self) -> None:
        """Let it undo what its tests did, however often it is interrupted meanwhile."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in the background so; it would hold for what tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in TERMINAL:
        os.environ.pop(name, None)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker())
