"""Cache of assembled roots: a folder for each lock, with the files that guests get as ``/usr``.

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
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
PACKAGES, ASSEMBLED = "packages", "assembled"
_NOTE = "root.json"


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
    roots = (cache / "roots").resolve()
    place = roots / ASSEMBLED / _key(spec, lock)
    if (root := _read(spec, place)) is not None:
        return root
    try:
        with locked(roots / "lock", "waiting for another assembly of a root", progress):
            if (root := _read(spec, place)) is not None:
                return root
            shutil.rmtree(place, ignore_errors=True)
            for stale in place.parent.glob(".new-*"):
                shutil.rmtree(stale, ignore_errors=True)  # left by a run that was killed
            download(lock, roots / PACKAGES, list_sources(lock.taken), progress)
            _assemble(spec, lock, roots / PACKAGES, place, progress)
    except OSError as error:
        room = "; make room, and try again" if error.errno in NO_ROOM else ""
        raise StorageError(f"cannot assemble the root {spec.name}: {error}{room}") from error
    root = _read(spec, place)
    if root is None:
        raise StorageError(f"{place} was changed while it was assembled; try again")
    return root


def find_root(spec: RootSpec, cache: Path) -> Root | None:
    """Return the root of ``spec`` if it is assembled below ``cache``.

    Raises:
        ConfigurationError: its lock is none.
    """
    return _read(spec, (cache / "roots").resolve() / ASSEMBLED / root_key(spec))


def root_key(spec: RootSpec) -> str:
    """Return 16 hex digits that name all that a root is made of, assembled or not.

    Raises:
        ConfigurationError: its lock is none.
    """
    return _key(spec, read_lock(spec.lock_file))


def _key(spec: RootSpec, lock: Lock) -> str:
    packages = [[package.name, package.sha256] for package in sorted(lock.packages)]
    made_of = json.dumps([FORMAT, packages, sorted(spec.patterns)])
    return hashlib.sha256(made_of.encode()).hexdigest()[:16]


def _read(spec: RootSpec, place: Path) -> Root | None:
    """Return the root at ``place``; ``None``: it is not there, or not whole any more."""
    try:
        note = json.loads((place / _NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if note["looks"] != read_looks(place / "usr"):
        if digest_files(place / "usr") != note["digest"]:
            return None
        _write_note(place, note["digest"])
    return Root(spec.name, place / "usr", note["digest"])


def _assemble(spec: RootSpec, lock: Lock, packages: Path, place: Path, progress: Progress) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        assembly = Assembly(scratch, spec.patterns)
        progress(f"unpacking {len(lock.packages)} packages, about 15 s")
        for package in lock.packages:
            assembly.add(package.name, package_file(packages, package))
        compile_library(scratch / "usr")
        for folder, _, _ in os.walk(scratch):
            Path(folder).chmod(0o755)
        _write_note(scratch, digest_files(scratch / "usr"))
        scratch.rename(place)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _write_note(place: Path, digest: str) -> None:
    note = {"digest": digest, "looks": read_looks(place / "usr")}
    (place / _NOTE).write_text(json.dumps(note), "utf-8")


def read_looks(usr: Path) -> str:
    """Return what changes when a file in ``usr`` is touched."""
    lines: list[str] = []
    for folder, _, names in os.walk(usr):
        for name in names:
            path = f"{folder}/{name}"
            status = os.lstat(path)
            lines.append(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_mode}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
