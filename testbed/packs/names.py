"""Names of files in a pack, as both sides accept them, and the most that it may hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote

METADATA_FILE = "ro-crate-metadata.json"
PAGES_FOLDER = "pages"
MAX_FILES = 100_000
MAX_BYTES = 16 << 30
"""Of all files together, unpacked; the captures of a thousand loads take a tenth of it."""
MAX_METADATA_BYTES = 128 << 20
_LONGEST_SEGMENT = 255  # bytes: NAME_MAX of limits.h(0p) on Linux
_LONGEST_NAME = 1024
_DEEPEST = 8


def describe_wrong_name(name: str) -> str:
    """Say what is wrong with the path of a file in a pack; empty: it leads nowhere else."""
    segments = name.split("/")
    if not name.isprintable() or "\\" in name or not name.isascii():
        return "has characters other than printable ASCII, or a backslash"
    if name.startswith("/") or any(segment in ("", ".", "..") for segment in segments):
        return "leads out of the folder, or is no plain path"
    if len(name) > _LONGEST_NAME or len(segments) > _DEEPEST:
        return f"is longer than {_LONGEST_NAME} characters or deeper than {_DEEPEST} folders"
    if any(len(segment) > _LONGEST_SEGMENT for segment in segments):
        return f"has a part of more than {_LONGEST_SEGMENT} characters"
    return ""


def list_collisions(names: Iterable[str]) -> Iterator[str]:
    """Yield each name that is there twice, or is a file as well as a folder."""
    files: set[str] = set()
    folders: set[str] = set()
    for name in names:
        above = name.split("/")[:-1]
        if name in files:
            yield name
        files.add(name)
        folders |= {"/".join(above[: depth + 1]) for depth in range(len(above))}
    yield from sorted(files & folders)


def to_id(name: str) -> str:
    """Return a name as an ``@id`` of RO-Crate: a relative URI (RFC 3986)."""
    return quote(name)


def from_id(identifier: str) -> str:
    """Return the name of an ``@id``."""
    return unquote(identifier)
