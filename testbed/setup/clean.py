"""Leftovers: what this program built or left behind, found and removed; results stay.

Trials on the host kernel leave nothing, even killed (``testbed.kernel.run.enclosure``), so nothing
of the host is looked for here.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import storing
from testbed.base.scratch import find_scratch
from testbed.kernel.run.jail import SHARED_MEMORY

PARTS = frozenset(
    {"bpf", "bundles", "js", "kernels", "logs", "native", "packages", "pages"}
    | {"python", "recipes", "roots", "toolchains", "venv"}
)
"""The folders that this program makes in its cache; anything else there is not ours to remove."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One file or folder of ours, its size on disk in bytes, and why it is kept, if it is."""

    path: Path
    size_bytes: int
    kept: str = ""


def find_leftovers(cache: Path, temporary: Path | None = None) -> list[Leftover]:
    """Return everything of ours in the cache and in the folders for temporary files."""
    folders = [temporary] if temporary else [Path(tempfile.gettempdir()), SHARED_MEMORY]
    scratch = (found for folder in folders for found in find_scratch(folder))
    candidates = [*_cached(cache), *((path, "a process uses it" * used) for path, used in scratch)]
    return [Leftover(path, size_of(path), kept) for path, kept in candidates]


def remove(leftovers: list[Leftover]) -> None:
    """Remove each one that is not kept.

    Raises:
        StorageError: one cannot be removed; those before it are gone.
    """
    for leftover in leftovers:
        if leftover.kept:
            continue
        with storing(f"remove {leftover.path}"):
            if leftover.path.is_dir() and not leftover.path.is_symlink():
                shutil.rmtree(leftover.path)
            else:
                leftover.path.unlink()


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files below a folder, in bytes."""
    paths = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    return sum(item.lstat().st_size for item in paths if item.is_symlink() or item.is_file())


def _cached(cache: Path) -> Iterator[tuple[Path, str]]:
    for part in sorted(cache.iterdir()) if cache.is_dir() else ():
        if part.name not in PARTS:
            continue
        if part.name not in {"python", "venv"}:
            yield part, ""
            continue
        running = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
        for place in sorted(part.iterdir()):
            in_use = any(prefix.is_relative_to(place.resolve()) for prefix in running)
            yield place, "this program runs in it" if in_use else ""
