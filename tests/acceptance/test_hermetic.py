"""What the processes of guests have open or mapped on the host: files of a root, and ours."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.base import places
from testbed.client import CLIENTS
from testbed.kernel.build.cache import find_kernel
from testbed.kernel.build.pin import read_pin
from testbed.root.cache import Root
from tests.acceptance.house import House, assert_ok

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = "tum-website"
NAMELESS = ("/dev/null", "/dev/zero", "/proc/", "/memfd:", "pipe:", "socket:", "anon_inode:", "[")
"""Of the kernel's own, with nothing of the machine in them; a guest's memory is a memfd."""
LOADS = sorted(set(CLIENTS) - {"command"})


@pytest.fixture(scope="module", autouse=True)
def page(house: House) -> None:
    house.take(PAGE)


class Watch:
    """Files that guests of this process have had open or mapped, as the host names them."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary.stat()
        self.files: set[Path] = set()

    def look(self) -> None:
        """Look at all of them once."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.path.samestat((process / "exe").stat(), self._binary) and is_ours(process):
                    self._look_at(process)
            except OSError:  # it has ended
                continue

    def _look_at(self, process: Path) -> None:
        names = [line[73:].strip() for line in (process / "maps").read_text().splitlines()]
        names += [str(descriptor.readlink()) for descriptor in (process / "fd").iterdir()]
        self.files.update(
            Path(name.removesuffix(" (deleted)"))
            for name in names
            if name and not name.startswith(NAMELESS)
        )


def is_ours(process: Path) -> bool:
    """Whether this process has started it, or what has."""
    while process.name not in ("0", "1", str(os.getpid())):
        stat = (process / "stat").read_text()
        process = process.with_name(stat.rpartition(")")[2].split()[1])
    return process.name == str(os.getpid())


@contextmanager
def watching(binary: Path) -> Iterator[Watch]:
    watch, over = Watch(binary), threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            watch.look()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("client", LOADS)
def test_no_file_of_the_machine_is_open_or_mapped(house: House, root: Root, client: str) -> None:
    build = find_kernel(read_pin("7.3"), places.cache())
    assert build is not None
    with watching(build.binary) as watch:
        ran = house.run(page=PAGE, client=client, rtt_ms=20)
    (record,) = ran.records
    assert_ok(record)
    seen = {file.name for file in watch.files if file.is_relative_to(root.usr)}
    assert seen >= {"libc.so.6", "nginx"}, "the watch saw nothing"
    ours = (root.usr, build.binary.parent, house.cache, ran.folder)
    # Folders of the jail's own, in memory or beside the machine's other scratch folders.
    scratch = tuple(
        f"{folder}/firstflight-stage-" for folder in ("/dev/shm", tempfile.gettempdir())
    )
    foreign = {
        file
        for file in watch.files
        if not str(file).startswith(scratch)
        and not any(file.is_relative_to(folder.resolve()) for folder in ours)
    }
    assert foreign == set()
