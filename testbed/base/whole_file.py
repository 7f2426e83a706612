"""Atomic file: written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from testbed.base.errors import ConfigurationError, StorageError


def write_whole(path: Path, text: str, remedy: str) -> None:
    """Write ``text`` to ``path``; ``remedy`` ends the message when that fails.

    Raises:
        StorageError: it cannot be written; what was there before is unchanged.
    """
    with open_whole(path, remedy) as file:
        file.write(text.encode("utf-8", "replace"))


@contextmanager
def open_whole(path: Path, remedy: str) -> Iterator[BinaryIO]:
    """Yield a file to be written, which becomes ``path`` when the block ends without an error.

    Raises:
        StorageError: it cannot be written, as the block finds or this does; what was there before
            is unchanged.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            temporary = Path(file.name)
            try:
                yield cast(BinaryIO, file)
                file.flush()
                os.fsync(file.fileno())
                temporary.chmod(0o644)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}; {remedy}") from None


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Let a file that a user named be written, unless it is there and is not to be replaced.

    A folder, a link, a device or a pipe is never replaced.

    Raises:
        ConfigurationError: it is, or cannot be looked at.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError([f"{path}: {error.strerror}; choose another name"]) from None
    if not stat.S_ISREG(mode):
        raise ConfigurationError([f"{path} is there and is no plain file; choose another name"])
    if not replace:
        raise ConfigurationError([f"{path} is there; choose another name, or give --replace"])
