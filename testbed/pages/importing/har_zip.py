"""Zip files of a HAR and the bodies beside it, as Playwright writes them (``content: "attach"``).

Nothing is unpacked to disk, so that no name in the file is ever a path here.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.pages.limits import ARCHIVE_BYTES, ENTRIES, HAR_BYTES, mib

_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError,
           EOFError, ValueError, zlib.error)  # fmt: skip


def is_har_zip(path: Path) -> bool:
    """Whether the zip file ``path`` has a HAR at its top, and so is no WACZ."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(_is_har(name) for name in archive.namelist())
    except _BROKEN:
        return False


def read_har_zip(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """The HAR in the zip file ``path``, and the other files by their names.

    Raises:
        ConfigurationError: it is broken, too large, or has several HARs.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            hars = [member.filename for member in members if _is_har(member.filename)]
            if len(hars) != 1:
                raise ConfigurationError([f"{path}: {len(hars)} HARs in one zip; import one"])
            if len(members) > 2 * ENTRIES:
                raise ConfigurationError([f"{path}: more than {2 * ENTRIES} files"])
            files: dict[str, bytes] = {}
            left = ARCHIVE_BYTES
            for member in members:
                with archive.open(member) as file:
                    files[member.filename] = file.read(left + 1)
                left -= len(files[member.filename])
                if left < 0:
                    raise ConfigurationError(
                        [f"{path}: more than {mib(ARCHIVE_BYTES)} unpacked; export fewer pages"]
                    )
    except _BROKEN as error:
        raise ConfigurationError([f"{path}: a broken zip: {error}; fetch it again"]) from None
    har = files.pop(hars[0])
    if len(har) > HAR_BYTES:
        raise ConfigurationError([f"{path}: a HAR of more than {mib(HAR_BYTES)}"])
    return har, files


def _is_har(name: str) -> bool:
    return "/" not in name and name.lower().endswith(".har")
