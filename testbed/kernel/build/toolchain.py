"""Toolchain: compiler, linker, make and shell of the build root, the same files on each machine.

Kernels and the C programs are made by it and by nothing of the machine, so that a machine needs no
compiler, and all machines make the same files.  Its programs run from the cache as any user
(``testbed.root.relocation``).

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.base.debian import list_places, newer_place
from testbed.base.errors import MissingError, caching
from testbed.base.locks import locked
from testbed.root.cache import Root, ensure_root, read_looks, root_key
from testbed.root.relocation import FORMAT, relocate
from testbed.root.spec import read_spec

ROOT = "build"
"""The root of its programs."""
_FOLDER = "toolchains"
_NOTE = "toolchain.json"
# What Debian's alternatives and the merge of /usr make on an installed system.
_LINKS = {"usr/bin/awk": "mawk", "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Programs that compile: the folder of their ``usr``, and what names them in a build."""

    folder: Path
    name: str

    def program(self, name: str) -> str:
        """Return where the program ``name`` is."""
        return str(self.folder / "usr" / "bin" / name)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that its programs want: with nothing of the machine's.

        ``SYSROOT`` is where headers and libraries are (``gcc --sysroot``).
        """
        return {"PATH": str(self.folder / "usr" / "bin"), "SYSROOT": str(self.folder),
                "LC_ALL": "C", "M4": self.program("m4"),
                "BISON_PKGDATADIR": str(self.folder / "usr" / "share" / "bison")}  # fmt: skip


def read_name() -> str:
    """Return what names the toolchain in a build, there or not: all that it is made of.

    Raises:
        ConfigurationError: the lock of its root is none.
    """
    return f"root {ROOT} {root_key(read_spec(ROOT))}"


def ensure_toolchain(cache: Path, progress: Progress) -> Toolchain:
    """Return the toolchain, made below ``cache`` if need be.

    Raises:
        MissingError: this machine is another than x86-64, or packages are nowhere to be had.
        StorageError: packages are damaged, or the cache cannot be written.
    """
    if platform.machine() != "x86_64":
        raise MissingError(f"the virtual kernel needs x86_64; this machine is {platform.machine()}")
    place = (cache / _FOLDER).resolve() / read_name().rpartition(" ")[2]
    place = next(filter(_is_whole, list_places(place)), place)
    if not _is_whole(place):
        root = ensure_root(read_spec(ROOT), cache, progress)
        place = newer_place(place) if root.newer else place
        waiting = "waiting for another run's toolchain"
        with (
            caching(f"make the toolchain {place}"),
            locked(place.parent / "lock", waiting, progress),
        ):
            if not _is_whole(place):
                _make(place, root)
    return Toolchain(place, _read_note(place).get("name", read_name()))


def _make(place: Path, root: Root) -> None:
    shutil.rmtree(place, ignore_errors=True)
    relocate(root.usr, place / "usr")
    for name, target in _LINKS.items():
        (place / name).symlink_to(target)
    newer = {"name": f"root {ROOT} {root.digest[:16]}, newer than its lock"} if root.newer else {}
    (place / _NOTE).write_text(json.dumps(_look(place) | newer), "utf-8")


def _is_whole(place: Path) -> bool:
    """Return whether it is there as it was made, for programs know where they are."""
    try:
        return bool(_look(place).items() <= _read_note(place).items())
    except (OSError, ValueError):
        return False


def _read_note(place: Path) -> dict[str, str]:
    """Return what was noted of a toolchain when it was made."""
    note: dict[str, str] = json.loads((place / _NOTE).read_text("utf-8"))
    return note


def _look(place: Path) -> dict[str, object]:
    return {"format": FORMAT, "place": str(place), "looks": read_looks(place / "usr")}
