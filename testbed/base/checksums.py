"""Checksums of a folder that is built once and used often: a list of SHA-256 digests inside it.

The list is one that sha256sum(1) reads: ``cd FOLDER && sha256sum -c SHA256SUMS``.  Digests are
compared when a run begins; while it runs, a look at sizes and times of change shows whether that
has to be done again, at the cost of a stat(2) for each file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

CHECKSUMS_FILE = "SHA256SUMS"

Stamps = dict[str, tuple[int, int, int, int]]
"""Of each file by its name: inode, size in bytes, and ns of its last change of content and state.

The last of them no program can set (inode(7)).
"""


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_checksums(folder: Path) -> None:
    """Write the list of all files in ``folder``, which is complete."""
    lines = [f"{file_sha256(path)}  {name}\n" for name, path in _files(folder)]
    (folder / CHECKSUMS_FILE).write_text("".join(lines), "utf-8")


def damaged_files(folder: Path) -> tuple[str, ...]:
    """Return the names of files in ``folder`` that are altered, missing, or not in its list.

    Without a list that can be read, its own name is all that is returned.
    """
    listed: dict[str, str] = {}
    try:
        for line in (folder / CHECKSUMS_FILE).read_text("utf-8").splitlines():
            digest, _, name = line.partition("  ")
            listed[name] = digest
        digests = {name: file_sha256(path) for name, path in _files(folder)}
    except (OSError, UnicodeDecodeError):
        return (CHECKSUMS_FILE,)
    if not listed:
        return (CHECKSUMS_FILE,)
    names = sorted({*listed, *digests})
    return tuple(name for name in names if listed.get(name) != digests.get(name))


def read_stamps(folder: Path) -> Stamps:
    """Read what shows cheaply whether a file in ``folder`` has been written to since."""
    stamps: Stamps = {}
    for name, path in _files(folder):
        status = path.stat()
        stamps[name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return stamps


def damaged_since(folder: Path, stamps: Stamps) -> tuple[str, ...]:
    """Return ``damaged_files`` of a folder that was as listed when ``stamps`` were read."""
    try:
        if read_stamps(folder) == stamps:
            return ()
    except OSError:  # gone between the listing and the look
        pass
    return damaged_files(folder)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name != CHECKSUMS_FILE and not path.is_dir():
            yield name, path
