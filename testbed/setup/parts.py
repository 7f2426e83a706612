"""Parts of the cache that a run takes: root, kernel, C programs and Python packages.

Each is a folder that is made from files of the work tree; ``KINDS`` is the one list of what they
are, and of how each is held against this tree.  Standard library only: a machine may have no Python
packages but those in a pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.base import places
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError
from testbed.kernel import ensure_build
from testbed.kernel.build.cache import differences, read_whole
from testbed.kernel.build.native import NATIVE, ensure_native, native_folder
from testbed.kernel.build.pin import pins, read_pin
from testbed.root.assembly import digest_files
from testbed.root.cache import ASSEMBLED, NOTE, ensure_packages, ensure_root, note_root, root_place
from testbed.root.lock import read_lock
from testbed.root.spec import read_spec, root_names
from testbed.setup.python_packages import RUN, VENVS, adopt_packages, packages_place
from testbed.setup.python_packages import ensure_packages as ensure_python

STARTER = "python"
"""The root whose packages go along as they are: a shell makes of them the Python that imports."""

Check = Callable[[str, str, Path, str], Iterator[str]]
"""Yields what is wrong, given a part's variant and folder below the cache, where its files are, and
their digest."""


@dataclass(frozen=True, slots=True)
class PartKind:
    """What parts of a kind have in common.

    Attributes:
        title: for people, with a place for the variant.
        kept_in: the folder of the cache that has such parts.
        sources: patterns of the files of the work tree that it is made from.
        check: how it is held against this tree beyond its sources, if at all.
        inner: the folder in it whose files are carried.
        left_out: patterns of those that are not.
        here: where it is below a cache, if that is not the same on each machine.
        finish: makes what is not carried, given the folder and the digest of what is.
    """

    title: str
    kept_in: str
    sources: tuple[str, ...]
    check: Check | None
    inner: str = ""
    left_out: tuple[str, ...] = ()
    here: Callable[[Path], Path] | None = None
    finish: Callable[[Path, str], None] | None = None


@dataclass(frozen=True, slots=True)
class CachePart:
    """One part: ``kind`` and ``variant``, such as kernel 7.3, and its folder below the cache."""

    kind: str
    variant: str
    folder: str

    @property
    def name(self) -> str:
        """Name of the part in a pack."""
        return f"{self.kind}-{self.variant}" if self.variant else self.kind

    @property
    def title(self) -> str:
        """What it is, for people."""
        return KINDS[self.kind].title.format(self.variant)

    def place(self, cache: Path) -> Path:
        """Return where the part is below ``cache``, or will be."""
        here = KINDS[self.kind].here
        return cache / self.folder if here is None else here(cache)

    def files(self, place: Path) -> Path:
        """Return the folder of the carried files of a part in the folder ``place``."""
        return place / KINDS[self.kind].inner

    def digest(self, place: Path) -> str:
        """Return the digest of what is carried of a part in ``place``."""
        return digest_files(self.files(place), KINDS[self.kind].left_out)

    def list_sources(self) -> dict[str, str]:
        """Return the SHA-256 of each file of this tree that it is made from, by its path there."""
        files = {
            file
            for pattern in KINDS[self.kind].sources
            for file in places.ROOT.glob(pattern.format(self.variant))
            if file.is_file()
        }
        return {str(file.relative_to(places.ROOT)): file_sha256(file) for file in sorted(files)}


def gather_parts(
    roots: Sequence[str], versions: Sequence[str], cache: Path, progress: Callable[[str], None]
) -> dict[CachePart, Path]:
    """Return the parts that runs in ``roots`` on pinned kernels take, and where each is.

    What is not there is made now.

    Raises:
        ConfigurationError: there is no such root, or a kernel is of the user's own.
        MissingError, StorageError, BuildError: one cannot be made.
    """
    if own := [version for version in versions if version not in pins()]:
        raise ConfigurationError(
            [f"kernel {version!r} is none that this tree pins; one of your own goes into a file by "
             "./run.sh kernel export" for version in own]
        )  # fmt: skip
    lands = {root: ensure_root(read_spec(root), cache, progress).usr for root in roots}
    usr = lands[roots[0]]
    found = [("root", root, land.parent) for root, land in lands.items()]
    found += [("kernel", version, ensure_build(version, cache, usr, progress).binary.parent)
              for version in versions]  # fmt: skip
    found.append(("programs", "", ensure_native(cache, progress)))
    found.append(("python", "", ensure_python(RUN, cache, progress)))
    return {
        CachePart(kind, variant, f"{KINDS[kind].kept_in}/{place.name}"): place
        for kind, variant, place in found
    }


def find_starter(cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Return the packages that a machine without Python unpacks first.

    Raises:
        MissingError: they are nowhere to be had.
        StorageError: the cache cannot be written.
    """
    if STARTER not in root_names():
        return ()
    return ensure_packages(read_spec(STARTER), cache, progress)


def _check_root(variant: str, folder: str, _files: Path, digest: str) -> Iterator[str]:
    spec = read_spec(variant)
    if folder != f"roots/{ASSEMBLED}/{root_place(spec, places.cache()).name}":
        yield "is assembled in another way than here"
    locked = read_lock(spec.lock_file).digest
    if locked not in (None, digest):
        yield f"has the digest {digest[:16]}, and the lock says {locked}"


def _check_kernel(variant: str, folder: str, files: Path, _digest: str) -> Iterator[str]:
    identity = read_whole(files)
    if identity is None:
        yield "is not the binary that its build.json names"
    elif variant not in pins() or identity.version != variant:
        yield f"is none of this tree's, which are {', '.join(pins())}"
    elif not folder.startswith(f"kernels/{variant}-"):
        yield f"is for {folder}, which is another kernel's place"
    else:
        yield from differences(identity, read_pin(variant))


def _check_programs(_variant: str, folder: str, _files: Path, _digest: str) -> Iterator[str]:
    if folder != f"{NATIVE}/{native_folder(places.cache()).name}":
        yield "are compiled in another way than here"


_NOT_CARRIED = ("*.log", "sysctls.json")

KINDS = {
    "root": PartKind(
        "root {}", f"roots/{ASSEMBLED}", ("roots/{}/*.toml",), _check_root,
        inner="usr", left_out=(NOTE,), finish=note_root,
    ),
    "kernel": PartKind(
        "kernel {}", "kernels", ("testbed/kernel/pins/{}/**/*",), _check_kernel,
        left_out=_NOT_CARRIED,
    ),
    "own": PartKind(
        "kernel {} of somebody's own", "kernels/own", (),
        lambda *_: iter(["is for ./run.sh kernel import"]), left_out=_NOT_CARRIED,
    ),
    "programs": PartKind("C programs", NATIVE, ("testbed/native/*.[ch]",), _check_programs),
    "python": PartKind(
        "Python packages", VENVS, (f"bootstrap/{RUN}.txt", f"roots/{STARTER}/lock.toml"), None,
        inner="lib",
        left_out=(
            *("**/__pycache__", "**/__pycache__/**"),  # of files with other times
            *("**/site-packages/pandas/tests/**", "**/site-packages/scipy/**/tests/**"),
        ),
        here=lambda cache: packages_place(RUN, cache),  # named by where this machine's Python is
        finish=lambda folder, _: adopt_packages(folder),
    ),
}  # fmt: skip
