"""Workers of a test run: how many there are, which tests stay together, and how they end.

A plugin of pytest and of pytest-xdist, which runs the tests of one file in one worker, and so in
their order: what a file builds or records once is built once.  Tests that look at the state of the
machine are one such unit, too, whatever their files.  The longest unit begins, by the seconds in
``tests/durations.json``.  ``make test-all`` leaves out tests marked ``nightly``, and ``make test``
those marked ``thorough``, too.  docs/decisions/architecture.md says why.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import NodeManager

from tests.keeper import keep

MOST = 6
"""Workers; the longest files, and what is collected by each of them, are the limit then."""
PER_CORE = 1.5
"""Workers; each of them waits for a third of its time, for links and limits in real time."""
WORKER_BYTES = 2 << 30
"""Memory that is free for each: two guests of 1 GB at most, of which a browser's use half."""
LONG = ("slow", "guest", "browser")
"""Marks of tests that take long: what is expected of them before they were measured."""
LONG_S = 5.0
SHORT_S = 0.02
LEAST_S = 0.5
"""What is noted of a test function without such a mark: one that takes less is short."""
TEARDOWN_S = 60
"""After an interrupt, until a worker is killed that has not undone what its test did."""
MACHINE = "machine"
"""The mark of tests that see, or may disturb, what others of them leave on the machine."""
TIERS = ("thorough", "nightly")
"""Marks of tests that `make test` leaves out, and of those that `make test-all` does."""
DURATIONS = Path("tests/durations.json")
"""Below the root; `make durations` renews it."""
TERMINAL = ("COLUMNS", "LINES")
"""Set by a shell or for a worker: what programs print in a test is no matter of either."""
MEMINFO = Path("/proc/meminfo")


class FilesAndMachine(LoadFileScheduling):
    """Give a worker a whole file, or all tests of the machine, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid, self.config.rootpath)


def function_of(nodeid: str) -> str:
    """Return the id of a test without its parameters."""
    return nodeid.partition("[")[0]


def unit_of(nodeid: str, root: Path) -> str:
    """Return what a test stays together with: its file, or the tests of the machine."""
    file, _, name = function_of(nodeid).partition("::")
    return MACHINE if name in marked_tests(root / file, MACHINE) else file


@functools.cache
def marked_tests(file: Path, mark: str) -> frozenset[str]:
    """Return the names of the functions in ``file`` that have a mark themselves or by their file.

    They are read, not imported: xdist hands out tests in a process that has collected none.
    """
    word, text = f"pytest.mark.{mark}", file.read_text()
    if word not in text:
        return frozenset()
    body = ast.parse(text).body
    whole = any(
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        and word in ast.unparse(node.value)
        for node in body
    )
    return frozenset(
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef)
        and (whole or word in map(ast.unparse, node.decorator_list))
    )


def read_available(meminfo: Path = MEMINFO) -> int:
    """Return the bytes of memory that processes may still take (proc(5))."""
    lines = (line.split() for line in meminfo.read_text().splitlines())
    return 1024 * next(int(words[1]) for words in lines if words[0] == "MemAvailable:")


def fitting_workers(cores: int, available: int) -> int:
    """Return how many workers ``cores`` and ``available`` bytes are enough for; at least one."""
    return max(1, min(MOST, int(cores * PER_CORE), available // WORKER_BYTES))


def pytest_xdist_auto_num_workers() -> int:
    return fitting_workers(len(os.sched_getaffinity(0)), read_available())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndMachine:
    NodeManager.EXIT_TIMEOUT = TEARDOWN_S
    config.option.loadscopereorder = False  # it would begin with the files that have most tests
    return FilesAndMachine(config, log)


def read_durations(root: Path) -> dict[str, tuple[float, int]]:
    """Return the seconds that each long test function took in all, and how many cases it had."""
    file = root / DURATIONS
    return (
        {name: (s, n) for name, (s, n) in json.loads(file.read_text()).items()}
        if file.is_file()
        else {}
    )


def write_durations(root: Path, durations: Mapping[str, tuple[float, int]]) -> None:
    """Write what ``read_durations`` reads, a line for each function."""
    lines = (f"{json.dumps(name)}: [{s:.1f}, {n}]" for name, (s, n) in sorted(durations.items()))
    (root / DURATIONS).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def expected_s(item: pytest.Item, durations: Mapping[str, tuple[float, int]]) -> float:
    """Return about how many seconds a test will take; its marks tell of one that is new."""
    long = any(item.get_closest_marker(name) for name in LONG)
    seconds, cases = durations.get(function_of(item.nodeid), (LONG_S if long else SHORT_S, 1))
    return seconds / cases


def keep_cases(items: list[pytest.Item], *, whole: bool) -> None:
    """Take a tier's mark from cases that its ``but`` finds; with ``whole`` there must be one."""
    asked, found = set[str](), set[str]()
    for item in items:
        for mark in [mark for mark in item.iter_markers() if mark.name in TIERS and mark.kwargs]:
            about = f"{function_of(item.nodeid)}: {mark.name}({mark.kwargs['but']!r})"
            asked.add(about)
            if re.search(mark.kwargs["but"], item.nodeid.partition("[")[2].removesuffix("]")):
                item.own_markers.remove(mark)
                found.add(about)
    if whole and (wrong := sorted(asked - found)):
        raise pytest.UsageError(f"no case is left in by {', '.join(wrong)}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_cases(items, whole=not any("::" in argument for argument in config.args))
    durations, seconds = read_durations(config.rootpath), defaultdict[str, float](float)
    for item in items:
        marked = item.get_closest_marker(MACHINE) is not None
        unit = unit_of(item.nodeid, config.rootpath)
        if marked is not (unit == MACHINE):
            raise pytest.UsageError(f"{item.nodeid}: pytest.mark.{MACHINE} is not where it is read")
        seconds[unit] += expected_s(item, durations)
    items.sort(key=lambda item: -seconds[unit_of(item.nodeid, config.rootpath)])


class Stopwatch:
    """Notes how long test functions take, and keeps it in ``tests/durations.json``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seconds = defaultdict[str, float](float)
        self._cases = Counter[str]()
        self._long = set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = function_of(report.nodeid)
        self._seconds[function] += report.duration
        self._cases[function] += report.when == "call"
        if not report.keywords.keys().isdisjoint(LONG):
            self._long.add(function)

    def pytest_sessionfinish(self) -> None:
        """Keep what was known of tests that did not run."""
        known = {
            function: took
            for function, took in read_durations(self._root).items()
            if function not in self._cases and self._is_there(function)
        }
        measured = {
            function: (seconds, self._cases[function])
            for function, seconds in self._seconds.items()
            if self._cases[function] and (seconds >= LEAST_S or function in self._long)
        }
        write_durations(self._root, known | measured)

    def _is_there(self, function: str) -> bool:
        file, _, name = function.partition("::")
        path = self._root / file
        return path.is_file() and f"def {name}(" in path.read_text()


class Worker:
    """What holds in a worker only."""

    def pytest_keyboard_interrupt(self) -> None:
        """Let it undo what its tests did, however often it is interrupted meanwhile."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--note-durations",
        action="store_true",
        help="keep how long each test took in tests/durations.json",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        keep()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in the background so; it would hold for what tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in TERMINAL:
        os.environ.pop(name, None)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker())
    elif config.getoption("note_durations"):
        config.pluginmanager.register(Stopwatch(config.rootpath))
