"""Atomic file: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from testbed.base.errors import StorageError


def write_whole(path: Path, text: str, remedy: str) -> None:
    """Write ``text`` to ``path``; ``remedy`` ends the message when that fails.

    Raises:
        StorageError: it cannot be written; what was there before is unchanged.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(text.encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
                temporary.chmod(0o644)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}; {remedy}") from None
