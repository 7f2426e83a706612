"""Cache of assembled roots: a folder for each lock, with the files that guests get as ``/usr``.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.base.debian import list_places, newer_place, only_locked
from testbed.base.errors import ConfigurationError, MissingError, StorageError, caching
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.root.assembly import Assembly, digest_files
from testbed.root.download import GoneError, Progress, download, list_sources, package_file
from testbed.root.interpreter import compile_library
from testbed.root.lock import Lock, LockedPackage, describe_changes, join_parts, read_lock
from testbed.root.release import read_index
from testbed.root.relocation import FORMAT as RELOCATION
from testbed.root.relocation import relocate
from testbed.root.spec import RootSpec, read_spec

FORMAT = 2
"""Raise it when a root of the same lock is to be assembled anew."""
PACKAGES, ASSEMBLED, PACKED = "packages", "assembled", "packed"
COMPONENTS = "lib/firstflight"
"""The folder in ``usr`` where components are, each as NAME/usr."""
NOTE = "root.json"
SCRATCH = ".new-"
"""How the folder begins that a root is made in."""
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True, slots=True)
class Root:
    """An assembled root: the folder that guests get as ``/usr``, and the digest of its files.

    ``newer`` says in one line which packages are not those of the lock; empty: all are.
    """

    name: str
    usr: Path
    digest: str
    newer: str = ""


def ensure_named(name: str, cache: Path, progress: Progress) -> Root:
    """Return the root ``name``, assembled below ``cache`` if need be.

    ``progress`` is called with what goes on, again and again while it takes long.

    Raises:
        ConfigurationError: there is no such root, or its lock is none.
        As ``ensure_root``.
    """
    with repeating(progress) as report:
        return ensure_root(read_spec(name), cache, report)


def ensure_root(spec: RootSpec, cache: Path, progress: Progress, lock: Lock | None = None) -> Root:
    """Return the root of ``spec``, assembled below ``cache`` if need be, by its lock or ``lock``.

    Where no source has a package any more, the newest that the suites offer takes its place, and
    ``progress`` is told each time; not if FIRSTFLIGHT_LOCKED is set.

    Raises:
        ConfigurationError: its lock is none.
        MissingError: packages are nowhere to be had.
        StorageError: packages are damaged, do not come to the lock's digest, or the cache cannot be
            written.
    """
    lock = lock or _read_lock(spec)
    root = _find(spec, lock, cache)
    if root is None:
        with caching(f"assemble the root {spec.name}"), roots_lock(cache, progress):
            root = _find(spec, lock, cache) or _make(spec, lock, cache, progress)
    if root.newer:
        progress(f"root {spec.name}: {root.newer}")
    return root


def find_root(spec: RootSpec, cache: Path) -> Root | None:
    """Return the root of ``spec`` if it is assembled below ``cache``.

    Raises:
        ConfigurationError: its lock is none.
    """
    return _find(spec, _read_lock(spec), cache)


def _read_lock(spec: RootSpec) -> Lock:
    lock = read_lock(spec.lock_file)
    if lock.components.keys() != spec.components.keys():
        raise ConfigurationError(
            [f"{spec.lock_file}: its components are not those of root.toml; "
             f"./run.sh root update {spec.name} writes it anew"]
        )  # fmt: skip
    return lock


def _find(spec: RootSpec, lock: Lock, cache: Path) -> Root | None:
    """Return the root of ``lock`` if it is there, or the one that took its place."""
    place = roots_folder(cache) / ASSEMBLED / _key(spec, lock)
    found = (read_root(spec.name, each) for each in list_places(place))
    return next(filter(None, found), None)


def _make(spec: RootSpec, lock: Lock, cache: Path, progress: Progress) -> Root:
    """Assemble the root of ``lock``, or the one that takes its place."""
    roots = roots_folder(cache)
    packages, place = roots / PACKAGES, roots / ASSEMBLED / _key(spec, lock)
    newer = ""
    try:
        _download(lock, packages, progress)
    except GoneError as gone:
        if only_locked():
            raise MissingError(f"root {spec.name}, only as locked: {gone}") from None
        renewed = _renew(spec, lock, gone, progress)
        _download(renewed, packages, progress)
        if _key(spec, renewed) == place.name:  # another path has the very same packages
            lock = replace(renewed, digest=lock.digest)
        else:
            newer, place = _describe_newer(lock, renewed), newer_place(place)
            lock = renewed
    shutil.rmtree(place, ignore_errors=True)
    _assemble(spec, lock, packages, place, newer, progress)
    root = read_root(spec.name, place)
    if root is None:
        raise StorageError(f"{place} was changed while it was assembled; try again")
    return root


def _download(lock: Lock, folder: Path, progress: Progress) -> None:
    """Download the packages of ``lock``; what is gone of its components is said with the rest."""
    gone: list[GoneError] = []
    for part in lock.parts.values():
        try:
            download(part.packages, folder, list_sources(part.taken), progress)
        except GoneError as error:
            gone.append(error)
    if gone:
        packages = [package for error in gone for package in error.packages]
        raise GoneError(packages, "\n".join(map(str, gone)))


def _renew(spec: RootSpec, lock: Lock, gone: GoneError, progress: Progress) -> Lock:
    progress(f"{len(gone.packages)} packages are gone; asking Debian for the newest")
    parts = lock.parts
    try:
        for name, part in parts.items():
            wanted = spec.parts[name]
            if lost := [package for package in part.packages if package in gone.packages]:
                index = read_index(wanted.suites)
                packages = index.renew(part.packages, lost, frozenset(wanted.without))
                parts[name] = Lock(part.taken, packages)
    except MissingError as error:
        raise MissingError(f"root {spec.name}: {gone}\n{error}") from None
    return join_parts(parts)


def _describe_newer(lock: Lock, renewed: Lock) -> str:
    changes = describe_changes(lock, renewed)
    return (
        f"{len(changes)} of {len(renewed.all_packages)} packages are newer than the lock: "
        f"{', '.join(change.replace(': ', ' ', 1) for change in changes)}"
    )


def root_place(spec: RootSpec, cache: Path) -> Path:
    """Return the folder below ``cache`` that the root of ``spec`` has, or will have.

    Raises:
        ConfigurationError: its lock is none.
    """
    return roots_folder(cache) / ASSEMBLED / root_key(spec)


def root_key(spec: RootSpec) -> str:
    """Return 16 hex digits that name all that a root is made of, assembled or not.

    Raises:
        ConfigurationError: its lock is none.
    """
    return _key(spec, _read_lock(spec))


def packed_place(digest: str, cache: Path) -> Path:
    """Return the folder below ``cache`` of a root that came in a pack, by the root's digest."""
    return roots_folder(cache) / PACKED / digest


def roots_folder(cache: Path) -> Path:
    """Return the folder of all that belongs to roots."""
    return (cache / "roots").resolve()


@contextmanager
def roots_lock(cache: Path, progress: Progress) -> Iterator[None]:
    """Keep others from assembling or importing a root during the block."""
    roots = roots_folder(cache)
    with locked(roots / "lock", "waiting for another assembly or import of a root", progress):
        for stale in roots.glob(f"*/{SCRATCH}*"):
            # Left by a run that was killed; of a package it is a file.
            stale.unlink() if stale.is_file() else shutil.rmtree(stale, ignore_errors=True)
        yield


def ensure_packages(spec: RootSpec, cache: Path, progress: Progress) -> tuple[Path, ...]:
    """Return the files of the packages of ``spec``, downloaded if need be.

    Raises:
        ConfigurationError: its lock is none.
        MissingError: some are nowhere to be had.
        StorageError: the cache cannot be written.
    """
    lock, folder = read_lock(spec.lock_file), roots_folder(cache) / PACKAGES
    try:
        with roots_lock(cache, progress):
            download(lock.packages, folder, list_sources(lock.taken), progress)
    except OSError as error:
        raise StorageError(f"cannot keep packages of the root {spec.name}: {error}") from error
    return tuple(package_file(folder, package) for package in lock.packages)


def _key(spec: RootSpec, lock: Lock) -> str:
    components = {
        name: [[package.name, package.sha256] for package in sorted(part.packages)]
        for name, part in lock.parts.items()
    }
    made_of: list[object] = [FORMAT, components.pop(""), sorted(spec.patterns)]
    made_of += [RELOCATION, components] if components else []
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def read_root(name: str, place: Path) -> Root | None:
    """Return the root at ``place``; ``None``: it is not there, or not whole any more."""
    try:
        note = json.loads((place / NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    newer = note.get("newer", "")
    if note["looks"] != read_looks(place / "usr"):
        if digest_files(place / "usr") != note["digest"]:
            return None
        try:
            note_root(place, note["digest"], newer, read_looks(place / "usr"))
        except OSError as error:
            if error.errno not in _NOT_OURS:  # such a cache is looked through each time
                raise
    return Root(name, place / "usr", note["digest"], newer)


def _assemble(
    spec: RootSpec, lock: Lock, packages: Path, place: Path, newer: str, progress: Progress
) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place.parent))
    try:
        progress(f"unpacking {len(lock.all_packages)} packages, about 15 s")
        _unpack(spec, lock.packages, packages, scratch, Path("/usr"))
        for name, component in lock.components.items():
            seen = Path("/usr", COMPONENTS, name, "usr")
            with tempfile.TemporaryDirectory(dir=scratch) as own:
                _unpack(spec, component.packages, packages, Path(own), seen)
                relocate(Path(own, "usr"), scratch / seen.relative_to("/"), seen)
        for folder, _, _ in os.walk(scratch):
            Path(folder).chmod(0o755)
        digest = digest_files(scratch / "usr")
        if lock.digest not in (None, digest):
            raise StorageError(
                f"root {spec.name}: its packages came to the digest {digest}, and its lock says "
                f"{lock.digest}; was root.toml changed, or {scratch.parent} while it was "
                f"assembled? ./run.sh root update {spec.name} writes the lock anew"
            )
        note_root(scratch, digest, newer)
        scratch.rename(place)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _unpack(
    spec: RootSpec, wanted: Sequence[LockedPackage], packages: Path, folder: Path, seen: Path
) -> None:
    """Unpack packages into ``folder``, whose ``usr`` guests have as ``seen``."""
    assembly = Assembly(folder, spec.patterns)
    for package in wanted:
        assembly.add(package.name, package_file(packages, package))
    compile_library(folder / "usr", str(seen))


def note_root(place: Path, digest: str, newer: str = "", looks: str = "") -> None:
    """Say of a folder that is a root's, or is about to become one, which digest its files have.

    Without ``looks`` they are held against it when they are in their place.
    """
    note = {"digest": digest, "newer": newer, "looks": looks}
    (place / NOTE).write_text(json.dumps(note), "utf-8")


def read_looks(usr: Path) -> str:
    """Return what changes when a file in ``usr`` is touched; ctime no program sets (inode(7))."""
    lines: list[str] = []
    for folder, _, names in os.walk(usr):
        for name in names:
            path = f"{folder}/{name}"
            status = os.lstat(path)
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            lines.append(f"{path} {status.st_size} {times} {status.st_mode}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
