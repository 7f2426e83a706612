"""Test runs in several workers: what stays together, what begins first, and interrupts."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.base import proc
from tests.workers import MACHINE, MOST, WORKER_BYTES, fitting_workers, read_available

ROOT = Path(__file__).parent.parent
GB = 1 << 30
DEADLINE_S = 900.0  # a busy machine may take its time
WORKER = """\
import os, time
from pathlib import Path
import pytest

def note():
    with Path({notes!r}).open("a") as stream:
        stream.write(Path(__file__).name + " " + os.environ["PYTEST_XDIST_WORKER"] + "\\n")

"""
ORDINARY = "def test_a():\n    note()\n\ndef test_b():\n    note()\n"
LONG = "@pytest.mark.slow\n" + ORDINARY
ENDLESS = """\
@pytest.fixture(scope="module")
def thing():
    yield
    time.sleep(1)
    Path(__file__).with_suffix(".undone").touch()

def test_a(thing):
    note()
    time.sleep(86400)
"""
INI = "[pytest]\nmarkers =\n    slow: takes long\n"


def argv(folder: Path, *words: str) -> tuple[str, ...]:
    given = ("-p", "conftest", "-p", "no:cacheprovider", "--rootdir", str(folder))
    return (sys.executable, "-m", "pytest", *given, "--dist", "loadfile", *words, str(folder))


def write_tests(folder: Path, files: Mapping[str, str]) -> None:
    (folder / "pytest.ini").write_text(INI)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(WORKER.format(notes=str(folder / "notes")) + content)


def notes(folder: Path) -> list[tuple[str, str]]:
    """Files and workers of the tests in the order in which they ran."""
    lines = (folder / "notes").read_text().splitlines() if (folder / "notes").exists() else []
    return [(file, worker) for file, worker in map(str.split, lines)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("cores", "available", "workers"),
    [(2, 22 * GB, 2), (2, 3 * GB, 1), (1, 22 * GB, 1), (64, 512 * GB, MOST), (2, GB, 1),
     (4, 3 * WORKER_BYTES, 3)],
)  # fmt: skip
def test_as_many_as_there_is_room_for(cores: int, available: int, workers: int) -> None:
    assert fitting_workers(cores, available) == workers


def test_memory_of_this_machine(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  4000000 kB\nMemFree:  1000 kB\nMemAvailable:  3000000 kB\n")
    assert read_available(meminfo) == 3_072_000_000
    assert read_available() > 0


def test_files_and_those_of_the_machine_stay_together_and_long_ones_begin(tmp_path: Path) -> None:
    files = dict.fromkeys(("test_a.py", "test_b.py", *MACHINE[:2]), ORDINARY)
    write_tests(tmp_path, files | {"test_z.py": LONG})
    words = argv(tmp_path, "-n", "2")
    done = proc.run(words, cwd=tmp_path, env=ENVIRONMENT, check=False, timeout_s=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].strip("= ").startswith("10 passed in ")
    ran = notes(tmp_path)
    assert len(ran) == 10
    workers = {name: {worker for file, worker in ran if file == name} for name, _ in ran}
    assert all(len(found) == 1 for found in workers.values())
    machine = [workers[Path(name).name] for name in MACHINE[:2]]
    assert machine[0] == machine[1]
    assert next(file for file, worker in ran if {worker} == workers["test_z.py"]) == "test_z.py"


def test_files_of_the_machine_are_there() -> None:
    assert [name for name in MACHINE if not (ROOT / name).is_file()] == []
    seeing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "import read_host_state" in (text := path.read_text()) or ", read_host_state" in text
    }
    assert seeing - {"tests/test_workers.py"} <= set(MACHINE)


def test_an_interrupt_undoes_what_each_worker_made(tmp_path: Path) -> None:
    """As a terminal does it: the whole process group is told."""
    write_tests(tmp_path, {"test_a.py": ENDLESS, "test_b.py": ENDLESS})
    with proc.started(argv(tmp_path, "-n", "2"), cwd=tmp_path, env=ENVIRONMENT) as child:
        deadline = time.monotonic() + DEADLINE_S
        while len(notes(tmp_path)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(DEADLINE_S) == pytest.ExitCode.INTERRUPTED
    assert sorted(path.name for path in tmp_path.glob("*.undone")) == [
        "test_a.undone",
        "test_b.undone",
    ]
