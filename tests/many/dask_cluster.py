"""Dask on this machine: a scheduler, and workers who share neither a user nor a cache.

Each worker is a user of its own, whose id no passwd(5) names.  Of folders that are closed to it,
its enclosure has the work tree and what was built, to be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base import places, proc
from tests.many.enclosure import enclosed_argv, open_to_all
from tests.native.load import LOOPBACK

FIRST_USER = 61001
_BUILT = ("kernels", "native", "python", "roots/assembled", "venv")
"""Folders of the cache whose entries take minutes to make, and are only read after that."""
_SOURCES = {"objects", "sources"}


@dataclass(frozen=True)
class DaskWorker:
    """A worker: its name, its user and its folder, which is its home and has its cache."""

    name: str
    user: int
    folder: Path

    @property
    def cache(self) -> Path:
        """What it has in the place of the machine's cache."""
        return self.folder / "cache"

    @property
    def environment(self) -> dict[str, str]:
        """What it is started with, beside the rest of ours."""
        return {
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(places.cache().parent),
            "DASK_CONFIG": str(self.folder / "dask"),
            "PYTHONPATH": str(places.ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FIRSTFLIGHT_STORE": "none",
        }

    def argv(self, *argv: str) -> tuple[str, ...]:
        """A command as this worker's user, in an enclosure of its own."""
        user = ("setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups")
        cache = places.cache()
        built = [
            word
            for entry in _entries()
            for word in ("--ro-bind", str(cache / entry), str(cache / entry))
        ]
        own = ("--bind", str(self.cache), str(cache), *built)
        options = (*open_to_all(places.ROOT, cache), *own)
        return enclosed_argv(*user, *argv, options=options)


@dataclass(frozen=True)
class Dask:
    """A scheduler's address, its workers by name, and the process of each."""

    folder: Path
    program: Path
    begin: Callable[[str, Mapping[str, str], tuple[str, ...]], proc.Process]
    workers: list[DaskWorker]
    processes: dict[str, proc.Process]

    @property
    def address(self) -> str:
        """What ``run --on`` says."""
        told: str = json.loads((self.folder / "scheduler.json").read_text("utf-8"))["address"]
        return told.replace("tcp:", "dask:")

    def is_ready(self) -> bool:
        """Whether the scheduler has said all of its address."""
        said = self.folder / "scheduler.json"
        return said.exists() and said.read_text("utf-8").endswith("}")

    def kill(self, name: str) -> None:
        """End a worker as if its machine had lost power."""
        self.processes[name].kill()
        self.processes[name].wait()

    def join(self, name: str, **environment: str) -> None:
        """Have one more worker, which has this in its environment, too."""
        self.begin_worker(name, **environment)
        self.expect(name)

    def begin_worker(self, name: str, **environment: str) -> None:
        """Start a worker."""
        worker = DaskWorker(name, FIRST_USER + len(self.workers), self.folder / name)
        _furnish(worker)
        argv = (
            *(str(self.program), "worker", self.address.replace("dask:", "tcp:")),
            *("--name", name, "--host", LOOPBACK, "--nworkers", "1", "--nthreads", "1"),
            *("--memory-limit", "0", "--no-dashboard", "--death-timeout", "60"),
            *("--local-directory", str(worker.folder / "scratch")),
        )
        self.workers.append(worker)
        own = worker.environment | environment
        self.processes[name] = self.begin(name, own, worker.argv(*argv))

    def expect(self, name: str) -> None:
        """Wait until the scheduler knows the worker."""
        assert proc.becomes_ready(self.processes[name], _registered(self, name)), self.log(name)

    def log(self, name: str) -> str:
        """What ``scheduler`` or a worker said."""
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")


@contextmanager
def serving_dask(program: Path, folder: Path, count: int = 3) -> Iterator[Dask]:
    """Serve Dask by its ``program``; every user reaches ``folder``.  Root's only."""
    with ExitStack() as stack:

        def begin(name: str, environment: Mapping[str, str], argv: tuple[str, ...]) -> proc.Process:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            return stack.enter_context(
                proc.started(argv, cwd=folder, env=os.environ | environment, stdout=log, stderr=log)
            )

        # Its own choice of a port: none that another may take meanwhile.
        scheduler = (str(program), "scheduler", "--host", LOOPBACK, "--port", "0")
        own = {"HOME": str(folder), "DASK_CONFIG": str(folder / "dask")}
        said = ("--scheduler-file", str(folder / "scheduler.json"))
        serving = begin("scheduler", own, (*scheduler, "--no-dashboard", *said))
        dask = Dask(folder, program, begin, [], {"scheduler": serving})
        assert proc.becomes_ready(serving, dask.is_ready), dask.log("scheduler")
        for number in range(1, count + 1):
            dask.begin_worker(f"worker{number}")
        for worker in dask.workers:
            dask.expect(worker.name)
        yield dask


def _registered(dask: Dask, name: str) -> Callable[[], bool]:
    """Ask whether the worker ``name`` has said that the scheduler knows it."""
    return lambda: "Registered to:" in dask.log(name)


def _furnish(worker: DaskWorker) -> None:
    """Make the worker's folder, and in its cache what is mounted upon."""
    for place in (worker.cache / entry for entry in _entries()):
        place.mkdir(parents=True)
    for path in (worker.folder, *worker.folder.rglob("*")):
        os.chown(path, worker.user, worker.user)


def _entries() -> list[Path]:
    """What was built, relative to the cache."""
    cache = places.cache()
    built = (entry for name in _BUILT for entry in (cache / name).iterdir() if entry.is_dir())
    return [entry.relative_to(cache) for entry in built if entry.name not in _SOURCES]
