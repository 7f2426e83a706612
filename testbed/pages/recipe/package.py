"""The files of a package, read from its tar archive into memory: nothing is ever unpacked to disk.

So no name in the archive can lead anywhere, no link can point out of it, and no script of the
package runs.
"""

from __future__ import annotations

import posixpath
import tarfile
from pathlib import Path
from typing import IO

from testbed.base.errors import ConfigurationError

MAX_BYTES = 512 * 1024 * 1024
_MAX_LINKS = 8


def read_files(tar: Path | IO[bytes], root: str, limit: int = MAX_BYTES) -> dict[str, bytes]:
    """The files below the folder ``root`` of an archive (perhaps gzipped), by their path in it.

    A symbolic link to a file of the same package counts as that file.

    Raises:
        ConfigurationError: no archive, no such folder, or more than ``limit`` bytes of files.
    """
    found = _Found(_inside(root) + "/", limit)
    try:
        opened = {"name": tar} if isinstance(tar, Path) else {"fileobj": tar}
        with tarfile.open(mode="r:*", **opened) as archive:
            for member in archive:
                found.take(archive, member)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ConfigurationError([f"{tar}: not a readable tar archive: {error}"]) from None
    if found.size > limit:
        raise ConfigurationError(
            [f"{tar}: more than {limit} bytes of files below {root!r}; choose a smaller `root`"]
        )
    files = found.result()
    if not files:
        raise ConfigurationError([f"{tar}: has no files below {root!r}; correct recipe.root"])
    return files


class _Found:
    """What was read so far; nothing more is once there are more than ``limit`` bytes."""

    def __init__(self, prefix: str, limit: int) -> None:
        self._prefix, self._limit = prefix, limit
        self._files: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self.size = 0

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = _inside(member.name)
        if not name.startswith(self._prefix):
            return
        if member.issym():
            target = posixpath.join(posixpath.dirname(name), member.linkname)
            self._links[name] = _inside(target)
        elif member.islnk():
            self._links[name] = _inside(member.linkname)
        elif member.isfile():
            self.size += member.size
            content = archive.extractfile(member) if self.size <= self._limit else None
            self._files[name] = content.read() if content else b""

    def result(self) -> dict[str, bytes]:
        files = dict(self._files)
        for name in self._links:
            target = _follow(name, self._links)
            if target in self._files:
                files[name] = self._files[target]
        return {name.removeprefix(self._prefix): data for name, data in files.items()}


def _inside(name: str) -> str:
    """``name`` as an absolute path of the archive: as many ``..`` as there may be stay inside."""
    return posixpath.normpath(posixpath.join("/", name)).replace("//", "/").rstrip("/")


def _follow(name: str, links: dict[str, str]) -> str:
    for _ in range(_MAX_LINKS):
        if name not in links:
            break
        name = links[name]
    return name
