"""Cache of assembled roots: a folder for each lock, with the files that guests get as ``/usr``.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import NO_ROOM, StorageError
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.root.assembly import Assembly, digest_files
from testbed.root.download import Progress, download, list_sources, package_file
from testbed.root.interpreter import compile_library
from testbed.root.lock import Lock, read_lock
from testbed.root.spec import RootSpec, read_spec

FORMAT = 2
"""Raise it when a root of the same lock is to be assembled anew."""
PACKAGES, ASSEMBLED, PACKED = "packages", "assembled", "packed"
NOTE = "root.json"
SCRATCH = ".new-"
"""How the folder begins that a root is made in."""


@dataclass(frozen=True, slots=True)
class Root:
    """An assembled root: the folder that guests get as ``/usr``, and the digest of its files."""

    name: str
    usr: Path
    digest: str


def ensure_named(name: str, cache: Path, progress: Progress) -> Root:
    """Return the root ``name``, assembled below ``cache`` if need be.

    ``progress`` is called with what goes on, again and again while it takes long.

    Raises:
        ConfigurationError: there is no such root, or its lock is none.
        As ``ensure_root``.
    """
    with repeating(progress) as report:
        return ensure_root(read_spec(name), cache, report)


def ensure_root(spec: RootSpec, cache: Path, progress: Progress) -> Root:
    """Return the root of ``spec``, assembled below ``cache`` if need be.

    Raises:
        ConfigurationError: its lock is none.
        MissingError: packages are nowhere to be had.
        StorageError: packages are damaged, or the cache cannot be written.
    """
    lock = read_lock(spec.lock_file)
    place = root_place(spec, cache)
    if (root := read_root(spec.name, place)) is not None:
        return root
    try:
        with roots_lock(cache, progress):
            if (root := read_root(spec.name, place)) is not None:
                return root
            shutil.rmtree(place, ignore_errors=True)
            packages = place.parents[1] / PACKAGES
            download(lock, packages, list_sources(lock.taken), progress)
            _assemble(spec, lock, packages, place, progress)
    except OSError as error:
        room = "; make room, and try again" if error.errno in NO_ROOM else ""
        raise StorageError(f"cannot assemble the root {spec.name}: {error}{room}") from error
    root = read_root(spec.name, place)
    if root is None:
        raise StorageError(f"{place} was changed while it was assembled; try again")
    return root


def find_root(spec: RootSpec, cache: Path) -> Root | None:
    """Return the root of ``spec`` if it is assembled below ``cache``.

    Raises:
        ConfigurationError: its lock is none.
    """
    return read_root(spec.name, root_place(spec, cache))


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
    return _key(spec, read_lock(spec.lock_file))


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
            download(lock, folder, list_sources(lock.taken), progress)
    except OSError as error:
        raise StorageError(f"cannot keep packages of the root {spec.name}: {error}") from error
    return tuple(package_file(folder, package) for package in lock.packages)


def _key(spec: RootSpec, lock: Lock) -> str:
    packages = [[package.name, package.sha256] for package in sorted(lock.packages)]
    made_of = json.dumps([FORMAT, packages, sorted(spec.patterns)])
    return hashlib.sha256(made_of.encode()).hexdigest()[:16]


def read_root(name: str, place: Path) -> Root | None:
    """Return the root at ``place``; ``None``: it is not there, or not whole any more."""
    try:
        note = json.loads((place / NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if note["looks"] != read_looks(place / "usr"):
        if digest_files(place / "usr") != note["digest"]:
            return None
        _write_note(place, note["digest"], read_looks(place / "usr"))
    return Root(name, place / "usr", note["digest"])


def _assemble(spec: RootSpec, lock: Lock, packages: Path, place: Path, progress: Progress) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place.parent))
    try:
        assembly = Assembly(scratch, spec.patterns)
        progress(f"unpacking {len(lock.packages)} packages, about 15 s")
        for package in lock.packages:
            assembly.add(package.name, package_file(packages, package))
        compile_library(scratch / "usr")
        for folder, _, _ in os.walk(scratch):
            Path(folder).chmod(0o755)
        note_root(scratch, digest_files(scratch / "usr"))
        scratch.rename(place)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def note_root(folder: Path, digest: str) -> None:
    """Say of a folder that is about to become a root's which digest its files have.

    They are held against it when they are in their place.
    """
    _write_note(folder, digest, "")


def _write_note(place: Path, digest: str, looks: str) -> None:
    (place / NOTE).write_text(json.dumps({"digest": digest, "looks": looks}), "utf-8")


def read_looks(usr: Path) -> str:
    """Return what changes when a file in ``usr`` is touched."""
    lines: list[str] = []
    for folder, _, names in os.walk(usr):
        for name in names:
            path = f"{folder}/{name}"
            status = os.lstat(path)
            lines.append(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_mode}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
