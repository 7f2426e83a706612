"""Dask on this machine: a scheduler and workers on loopback, each in an enclosure of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base import places, proc
from tests.many.enclosure import enclosed_argv
from tests.native.load import LOOPBACK


@dataclass(frozen=True)
class Dask:
    """A scheduler's address, and the process of each by name."""

    folder: Path
    programs: Path
    begin: Callable[[str, tuple[str, ...], Mapping[str, str]], proc.Process]
    processes: dict[str, proc.Process]

    @property
    def address(self) -> str:
        """What a client is given."""
        told: str = json.loads((self.folder / "scheduler.json").read_text("utf-8"))["address"]
        return told

    @property
    def environment(self) -> Mapping[str, str]:
        """What is started with, beside ours: nobody's configuration of Dask is read."""
        own = {"HOME": str(self.folder), "XDG_CACHE_HOME": str(places.cache().parent)}
        return os.environ | own | {"DASK_CONFIG": str(self.folder / "none")}

    def is_ready(self) -> bool:
        """Whether the scheduler has said all of its address."""
        said = self.folder / "scheduler.json"
        return said.exists() and said.read_text("utf-8").endswith("}")

    def start(self, name: str, *words: str) -> proc.Process:
        """Start ``dask WORDS``."""
        argv = enclosed_argv(str(self.programs / "dask"), *words, "--no-dashboard")
        self.processes[name] = self.begin(name, argv, self.environment)
        return self.processes[name]

    def kill(self, name: str) -> None:
        """End one as if its machine had lost power."""
        self.processes[name].kill()
        self.processes[name].wait()

    def log(self, name: str) -> str:
        """What one said."""
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")


@contextmanager
def serving_dask(programs: Path, folder: Path, count: int = 2) -> Iterator[Dask]:
    """Serve Dask by the ``programs`` in a folder, with ``count`` workers of one thread each."""
    with ExitStack() as stack:

        def begin(name: str, argv: tuple[str, ...], env: Mapping[str, str]) -> proc.Process:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            return stack.enter_context(
                proc.started(argv, cwd=folder, env=env, stdout=log, stderr=log)
            )

        dask = Dask(folder, programs, begin, {})
        # Its own choice of a port: none that another may take meanwhile.
        own = ("--host", LOOPBACK, "--port", "0")
        said = ("--scheduler-file", str(folder / "scheduler.json"))
        serving = dask.start("scheduler", "scheduler", *own, *said)
        assert proc.becomes_ready(serving, dask.is_ready), dask.log("scheduler")
        names = [f"worker{number}" for number in range(1, count + 1)]
        for name in names:
            single = ("--nworkers", "1", "--nthreads", "1", "--memory-limit", "0")
            own = ("--local-directory", str(folder / name), "--death-timeout", "60")
            dask.start(name, "worker", dask.address, "--host", LOOPBACK, *single, *own)
        for name in names:
            assert proc.becomes_ready(dask.processes[name], _registered(dask, name)), dask.log(name)
        yield dask


def _registered(dask: Dask, name: str) -> Callable[[], bool]:
    """Ask whether the worker ``name`` has said that the scheduler knows it."""
    return lambda: "Registered to:" in dask.log(name)
