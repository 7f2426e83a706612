"""What the processes of guests have open or mapped on the host: files of a root, and ours."""

from __future__ import annotations

import os
import shutil
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
    shutil.copytree(places.ROOT / "pages" / PAGE, house.pages / PAGE)


class Watch:
    """Files that processes of one kernel binary have had open or mapped, as the host names them."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary.stat()
        self.files: dict[str, str] = {}
        """The host's name of each file, by what identifies it."""

    def look(self) -> None:
        """Look at all of them once."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.path.samestat((process / "exe").stat(), self._binary):
                    self._look_at(process)
            except OSError:  # it has ended
                continue

    def _look_at(self, process: Path) -> None:
        inside = process / "root"
        for line in (process / "maps").read_text("utf-8", "replace").splitlines():
            self._add(inside, line[73:].strip())
        for descriptor in (process / "fd").iterdir():
            self._add(inside, str(descriptor.readlink()))

    def _add(self, inside: Path, name: str) -> None:
        # A jail may have folders in other places: what they are is asked where they are.
        name = name.removesuffix(" (deleted)")
        if name and not name.startswith(NAMELESS):
            self.files[identify(inside / name.lstrip("/"))] = name


def identify(path: Path) -> str:
    """Device and inode of a file or folder; its path where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return str(path)
    return f"{found.st_dev}:{found.st_ino}"


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
    known = {identify(path): path for path in root.usr.rglob("*")}
    seen = {known[name] for name in watch.files if name in known}
    assert {path.name for path in seen} >= {"libc.so.6", "nginx"}, "the watch saw nothing"
    ours = (build.binary.parent, house.cache, ran.folder)
    mine = {identify(path) for folder in ours for path in (folder, *folder.rglob("*"))}
    foreign = {name for file, name in watch.files.items() if file not in known.keys() | mine}
    # Folders of the jail's own, in memory or beside the machine's other scratch folders.
    scratch = (f"{folder}/firstflight-stage-" for folder in ("/dev/shm", tempfile.gettempdir()))
    assert {name for name in foreign if not name.startswith(tuple(scratch))} == set()
