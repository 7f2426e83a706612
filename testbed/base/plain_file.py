"""Plain file to be read: never a device or a pipe, which may have no end or no beginning."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

from testbed.base.errors import ConfigurationError


def open_plain(path: Path) -> BinaryIO:
    """Open a file that a user named, to be read.

    Raises:
        ConfigurationError: it is no plain file, or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigurationError([f"{path}: is no plain file; name one"])
        return path.open("rb")
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error.strerror}"]) from None
