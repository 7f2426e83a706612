"""The load generator and the event server as tests start them, and a server by script."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.base.places import cache
from testbed.kernel.build.native import ensure_native

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "testbed" / "native"
LOOPBACK = "127.0.0.1"
# No test is about how busy the machine is.
ANY_LATENESS = ("--lateness-limit-us", "3600000000")
Report = dict[str, Any]


def free_port() -> int:
    """A port of the loopback device that nothing listens on."""
    with socket.create_server((LOOPBACK, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def few_descriptors(most: int) -> tuple[str, ...]:
    """Prefix of a command that has ``most`` descriptors and, as root too, cannot have more."""
    limited = ("prlimit", f"--nofile={most}:{most}")
    if os.geteuid() != 0:
        return limited
    return ("setpriv", "--bounding-set=-sys_resource", *limited)


def compile_driver(folder: Path, name: str, program: str) -> Path:
    """Compile a small program that uses a header of ``testbed/native``."""
    source, target = folder / f"{name}.c", folder / name
    source.write_text(program)
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wno-unused-function")
    proc.run(("cc", *flags, "-I", str(SOURCES), "-o", str(target), str(source)))
    return target


@dataclass(frozen=True)
class Load:
    """What a run of the generator left."""

    status: int
    report: Report
    complaint: str

    @property
    def outcomes(self) -> dict[str, int]:
        """Connections by how they ended, those that did not occur left out."""
        return {
            name: count
            for name, count in self.report["connections"].items()
            if count and name != "started"
        }


@dataclass
class Serving:
    """An event server; ``report`` is there once it has ended."""

    target: str
    status: int = -1
    report: Report = field(default_factory=dict)

    def total(self, name: str) -> int:
        return sum(int(worker[name]) for worker in self.report["workers"])


@dataclass(frozen=True)
class Programs:
    """The two programs, compiled from their sources; ``prefix`` runs a command where they run."""

    folder: Path

    def generate(
        self, target: str, *options: str, prefix: Sequence[str] = (), late: bool = True
    ) -> Load:
        """Run the generator against ``target``; ``late``: whether it may be late."""
        program = str(self.folder / "load-generator")
        given = (*(ANY_LATENESS if late else ()), *options)
        argv = (*prefix, program, "--target", target, *given)
        done = proc.run(argv, check=False, timeout_s=120)
        report = json.loads(done.stdout) if done.stdout else {}
        return Load(done.returncode, report, done.stderr)

    @contextmanager
    def serving(
        self, folder: Path, *options: str, address: str = LOOPBACK, prefix: Sequence[str] = ()
    ) -> Iterator[Serving]:
        """An event server while the block runs; then it has reported."""
        serving = Serving(f"{address}:{free_port()}")
        program = str(self.folder / "event-server")
        argv = (*prefix, program, "--listen", serving.target, *options)
        output = folder / "event-server.json"
        with output.open("wb") as stream, proc.started(argv, stdout=stream, stderr=stream) as child:
            while b"listening" not in output.read_bytes():
                assert child.poll() is None, output.read_text()
                threading.Event().wait(0.01)
            yield serving
            if child.poll() is None:
                child.terminate()
            serving.status = child.wait(30)
        serving.report = json.loads(output.read_text().splitlines()[-1])


def copy_programs(folder: Path) -> Programs:
    """Copies of what bootstrap compiled: who looks for processes of them finds the tests' own."""
    try:
        shutil.copytree(ensure_native(cache(), print), folder, dirs_exist_ok=True)
    except MissingError as error:
        pytest.skip(str(error))
    return Programs(folder)


Script = Callable[[socket.socket, int], None]


@dataclass
class Scripted:
    """A server in this process: ``script`` has each connection and its number, in a thread."""

    target: str
    accepted: int = 0


@contextmanager
def following(script: Script, backlog: int = 64) -> Iterator[Scripted]:
    """A server on the loopback device that does with each connection what ``script`` says."""
    listener = socket.create_server((LOOPBACK, 0), backlog=backlog)
    scripted = Scripted(f"{LOOPBACK}:{listener.getsockname()[1]}")
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            script(connection, number)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=serve, args=(connection, scripted.accepted))
                scripted.accepted += 1
                threads.append(thread)
                thread.start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield scripted
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for thread in threads:
            thread.join()


def read_request(connection: socket.socket) -> bytes:
    """A whole request; empty: the client has gone."""
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        part = connection.recv(65536)
        if not part:
            return b""
        request += part
    return request
