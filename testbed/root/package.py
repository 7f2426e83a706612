"""Debian package file: what it installs, read without dpkg (deb(5), ar(5)).

Standard library only: a root is assembled before there is a Python environment.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from testbed.base.errors import StorageError

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_END = b"`\n"


@contextmanager
def open_content(file: Path) -> Iterator[tarfile.TarFile]:
    """Yield the archive of what the package ``file`` installs, to be read once, from first to last.

    Raises:
        StorageError: it is no package of Debian, is cut short, or is compressed in a way that
            Python cannot read.
    """
    try:
        with file.open("rb") as stream:
            name, content = _find_member(file, stream, "data.tar")
            with (
                _decompressed(file, name, content) as plain,
                tarfile.open(fileobj=plain, mode="r|") as archive,
            ):
                yield archive
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, tarfile.TarError) as error:
        raise StorageError(f"{file}: damaged package ({error}); remove it") from error


def _find_member(file: Path, stream: BinaryIO, prefix: str) -> tuple[str, BinaryIO]:
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise StorageError(f"{file}: no package of Debian; remove it")
    while header := stream.read(_HEADER_BYTES):
        size = header[48:58].strip()
        if len(header) < _HEADER_BYTES or header[58:] != _END or not size.isdigit():
            break
        name = header[:16].decode("ascii", "replace").strip().rstrip("/")
        if name.startswith(prefix):
            return name, cast(BinaryIO, io.BufferedReader(Section(stream, int(size))))
        stream.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise StorageError(f"{file}: damaged package (it has no {prefix}); remove it")


class Section(io.RawIOBase):
    """The next ``size`` bytes of a stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into ``buffer``, and return how many bytes it was."""
        piece = self._stream.read(min(len(buffer), self._left))
        buffer[: len(piece)] = piece
        self._left -= len(piece)
        return len(piece)


def _decompressed(file: Path, name: str, content: BinaryIO) -> BinaryIO:
    match name.removeprefix("data.tar"):
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(content))
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=content))
        case "":
            return content
        case other:
            raise StorageError(f"{file}: compressed as {other}, which Python cannot read")
