"""Atomic folders: they appear whole or not at all, and are replaced in one step.

renameat2(2) exchanges two folders in one step; where a file system cannot, the old one is moved
aside for the moment between two rename(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_CANNOT_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


class OccupiedError(OSError):
    """The folder is there already."""


@contextmanager
def new_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty sibling of ``target`` to be filled; it becomes ``target`` at the end.

    Files get mode 0644 and folders 0755, whatever the umask, and all is on disk before the name
    is.  After an error in the block ``target`` is as it was.

    Raises:
        OccupiedError: ``target`` is there and is not to be replaced.
        OSError: it cannot be written, or what is to be replaced is no folder, or a link to one.
    """
    _refuse(target, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield scratch
        _settle(scratch)
        _move(scratch, target, replace=replace)
        sync(target.parent)
    finally:
        # Without the rename it is what was written; after an exchange, what was replaced.
        shutil.rmtree(scratch, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk (fsync(2))."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse(target: Path, *, replace: bool) -> None:
    if not os.path.lexists(target):
        return
    if not replace:
        raise OccupiedError(errno.EEXIST, "it is there already", str(target))
    if target.is_symlink() or not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a link or no folder", str(target))


def _settle(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o755 if path.is_dir() else 0o644)
        sync(path)


def _move(scratch: Path, target: Path, *, replace: bool) -> None:
    _refuse(target, replace=replace)
    if not target.exists():
        scratch.rename(target)
    elif not _exchange(scratch, target):
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            target.rename(aside)  # onto an empty folder, which rename(2) allows
        except OSError:
            aside.rmdir()
            raise
        try:
            scratch.rename(target)
        except OSError:
            aside.rename(target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(folder: Path, other: Path) -> bool:
    """Return whether the two have changed places."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, bytes(folder), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))
