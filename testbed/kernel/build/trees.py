"""Object trees of one base: the first, and spare ones for builds that would wait for it.

A spare is a copy of the first at rest, made when a build first finds that one taken.  Files of the
source are shared with it (link(2)): make does not write them, and a build replaces those that a
patch changes.  What was compiled is copied, with its times, so that make finds it up to date.

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.base.locks import is_locked_now, locked
from testbed.kernel.build.toolchain import Progress

STATE_FILE = "state.json"
"""It is written last: a tree without it is none."""
UNPACKED_FILE = "unpacked"
"""What is older than this file is of the source, and unchanged since it was unpacked."""
_LOCK_FILE = "lock"
MOST_TREES = 4
"""Of one base, however many cores there are; each is some 150 MB, and the first 2 GB."""
ROOM_BYTES = 4 << 30
"""With less left on the disk no spare is made: builds wait."""


@contextmanager
def open_tree(
    folder: Path, whole: Callable[[Path], bool], name: str, progress: Progress
) -> Iterator[Path]:
    """Yield a tree of the base in ``folder`` that no other build uses during the block.

    ``whole`` says whether a build may go on from a tree; ``name`` is the kernel's, for messages.
    """
    waiting = f"kernel {name}: waiting for another run that builds in {folder}"
    with ExitStack() as held:
        if held.enter_context(is_locked_now(folder / _LOCK_FILE)):
            yield folder
            return
        for spare in _spares(folder):
            if not held.enter_context(is_locked_now(spare / _LOCK_FILE)):
                continue
            if whole(spare):
                yield spare
                return
            with locked(folder / _LOCK_FILE, waiting, progress):
                if not (whole(folder) and shutil.disk_usage(folder).free >= ROOM_BYTES):
                    yield folder
                    return
                progress(f"kernel {name}: copying what was compiled, to build beside others")
                _copy_tree(folder, spare)
            yield spare
            return
        with locked(folder / _LOCK_FILE, waiting, progress):
            yield folder


def _spares(folder: Path) -> list[Path]:
    most = min(MOST_TREES, max(2, os.cpu_count() or 1))
    return [folder.with_name(f"{folder.name}.{number}") for number in range(2, most + 1)]


def _copy_tree(folder: Path, spare: Path) -> None:
    """Make ``spare`` what ``folder`` is, whatever was there before."""
    for path in spare.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK_FILE:
            path.unlink()
    try:
        since_ns = (folder / UNPACKED_FILE).stat().st_mtime_ns
    except FileNotFoundError:
        since_ns = 0  # of a tree that is older than spares: all of it is copied

    def put(source: str, target: str) -> None:
        if os.lstat(source).st_mtime_ns < since_ns:
            os.link(source, target, follow_symlinks=False)
        else:
            shutil.copy2(source, target, follow_symlinks=False)

    for path in folder.iterdir():
        if path.is_dir():
            shutil.copytree(path, spare / path.name, symlinks=True, copy_function=put)
        elif path.name not in (_LOCK_FILE, STATE_FILE):
            shutil.copy2(path, spare / path.name)
    shutil.copy2(folder / STATE_FILE, spare / STATE_FILE)
