"""Folders of the work tree, and outside it the cache and what is the user's own.

The cache is ``$XDG_CACHE_HOME/firstflight`` (XDG Base Directory Specification), with a folder for
each kind of thing that was built.
"""

from __future__ import annotations

import fcntl
import os
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base.errors import StorageError

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
PAGES = ROOT / "pages"
PROFILES = ROOT / "profiles"
TRACES = ROOT / "traces"
RESULTS = ROOT / "results"
PATIENCE_S = 5.0
DEFAULT_CONFIG = CONFIGS / "paper-table1.toml"


def cache() -> Path:
    """Return the cache folder, whether it exists or not."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "firstflight"


def data() -> Path:
    """Return the folder of what is the user's own, such as kernels, whether it exists or not.

    ``$XDG_DATA_HOME/firstflight``; ``clean`` leaves it alone.
    """
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "firstflight"


def describe_version() -> str:
    """Return ``firstflight`` and its version, which ``pyproject.toml`` says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['name']} {project['version']}"


@contextmanager
def using_cache(folder: Path) -> Iterator[None]:
    """Keep ``clean`` away from the cache for the time of the block (flock(2), shared).

    It waits a moment: to remove one kernel does not take longer.

    Raises:
        StorageError: the cache cannot be made, or is just being emptied.
    """
    reason = "`clean` is emptying it; try again when it has ended"
    with _locked(folder, fcntl.LOCK_SH, reason, PATIENCE_S):
        yield


@contextmanager
def emptying_cache(folder: Path) -> Iterator[None]:
    """Keep runs away from the cache for the time of the block.

    Raises:
        StorageError: a run is using it.
    """
    with _locked(folder, fcntl.LOCK_EX, "a run is using it; try again when it has ended"):
        yield


@contextmanager
def _locked(folder: Path, kind: int, reason: str, patience_s: float = 0) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(
            f"cannot use the cache {folder}: {error.strerror}; "
            "set XDG_CACHE_HOME to a folder that you may write to"
        ) from error
    try:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StorageError(f"cannot use the cache {folder}: {reason}") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
