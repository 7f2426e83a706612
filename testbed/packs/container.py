"""Container of a pack: a ZIP archive with one way to write a file, and a reader of just that.

PKWARE's APPNOTE 6.3.  Order, times and permissions are always the same, so the same files give the
same bytes (by the same zlib).  The reader takes regular files and nothing else: no folder, link,
device, encryption or other compression; and it trusts no size before it has counted.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.plain_file import open_plain
from testbed.packs.names import (
    MAX_BYTES,
    MAX_FILES,
    MAX_METADATA_BYTES,
    METADATA_FILE,
    describe_wrong_name,
    list_collisions,
)

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_MODE = stat.S_IFREG | 0o644
_UNIX = 3
_ENCRYPTED = 0x1
_LEVEL = 6
_PIECE = 1 << 20
_MAX_DIRECTORY_BYTES = 128 << 20
_MAX_NAMED = 20
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_END = struct.Struct("<4s4H2LH")
"""End of central directory record, without its comment: section 4.3.16."""
_END_64 = struct.Struct("<4sQ2H2L4Q")
"""The same of ZIP64: section 4.3.14; its locator, of 20 bytes, is between the two."""
_LOCATOR_BYTES = 20
_IN_ZIP64 = 0xFFFF_FFFF
_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, ValueError,
           zlib.error, struct.error)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackFile:
    """A file that belongs into a pack: its name there, where it is, and what is in it."""

    name: str
    path: Path
    size: int
    sha256: str


def write_container(stream: BinaryIO, metadata: bytes, files: Sequence[PackFile]) -> None:
    """Write the archive: the metadata first, then ``files``, sorted by name.

    Raises:
        StorageError: a file is not what it was when its digest was taken, or cannot be read.
        OSError: the archive cannot be written.
    """
    with zipfile.ZipFile(stream, "w", compresslevel=_LEVEL) as archive:
        with archive.open(_header(METADATA_FILE, len(metadata)), "w") as target:
            target.write(metadata)
        for file in sorted(files, key=lambda each: each.name):
            with archive.open(_header(file.name, file.size), "w") as target:
                seen = hashlib.sha256()
                for piece in _read(file.path):
                    seen.update(piece)
                    target.write(piece)
            if seen.hexdigest() != file.sha256:
                raise StorageError(
                    f"{file.path} changed while it was packed; pack it when its run has ended"
                )


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from None


def _header(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = _MODE << 16
    info.file_size = size  # whether sizes take 32 or 64 bits
    return info


class Container:
    """An archive that is open, whose names, sizes and kinds of files are in order."""

    def __init__(self, archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]) -> None:
        self._archive = archive
        self._entries = entries

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each file by its name, as the archive says."""
        return {name: info.file_size for name, info in self._entries.items()}

    def read_metadata(self) -> bytes:
        """Return the metadata; empty where there is none.

        Raises:
            ValueError: it is longer than the archive says.
        """
        if METADATA_FILE not in self._entries:
            return b""
        return b"".join(self._pieces(METADATA_FILE))

    def extract(self, name: str, target: Path, sha256: str) -> None:
        """Write one file to ``target``, which is not there.

        Raises:
            ValueError: it is not the bytes that ``sha256`` says, or the archive is damaged.
            OSError: it cannot be written.
        """
        seen = hashlib.sha256()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as stream:
            for piece in self._pieces(name):
                seen.update(piece)
                stream.write(piece)
        if seen.hexdigest() != sha256:
            raise ValueError(f"{name} has another SHA-256 than {METADATA_FILE} says")

    def _pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's content, and never more than the archive says it has.

        Raises:
            ValueError: there is more or less, or it cannot be unpacked.
        """
        left = self._entries[name].file_size
        try:
            with self._archive.open(self._entries[name]) as stream:
                while piece := stream.read(_PIECE):
                    left -= len(piece)
                    if left < 0:
                        break
                    yield piece
        except _BROKEN as error:
            raise ValueError(f"{name}: damaged ({error})") from None
        if left:
            raise ValueError(f"{name}: damaged (another size than the archive says)")


@contextmanager
def open_container(file: Path) -> Iterator[Container]:
    """Yield the archive in ``file``, after a look at all that it says of its files.

    Raises:
        ConfigurationError: it is no plain file, no archive, cannot be read, or holds what no pack
            does: every problem; nothing of it was unpacked.
    """
    with open_plain(file) as stream:
        try:
            _check_directory(stream)
            stream.seek(0)
            archive = zipfile.ZipFile(stream)
        except OSError as error:
            raise ConfigurationError(
                [f"{file}: cannot be read: {error.strerror or error}"]
            ) from None
        except _BROKEN as error:
            raise refuse_pack(file, [f"no pack of results, or damaged: {error}"]) from None
        with archive:
            entries = archive.infolist()
            problems = list(_list_problems(entries))
            if problems:
                raise refuse_pack(file, problems)
            yield Container(archive, {info.filename: info for info in entries})


def _check_directory(stream: BinaryIO) -> None:
    """Check that the archive ends as ours do, and in a directory that fits into memory.

    Raises:
        ValueError: it does not.
    """
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _END.size))
    tail = stream.read(_END.size)
    if len(tail) != _END.size or not tail.startswith(b"PK\x05\x06"):
        raise ValueError("it does not end as a ZIP archive of ours does")
    _, _, _, _, count, length, _, _ = _END.unpack(tail)
    place = size - _END.size - _LOCATOR_BYTES - _END_64.size
    if place >= 0:
        stream.seek(place)
        record = stream.read(_END_64.size)
        if record.startswith(b"PK\x06\x06"):
            count, length = _END_64.unpack(record)[7:9]
    if count > MAX_FILES + 1 or length > _MAX_DIRECTORY_BYTES:
        raise ValueError(f"it names more than {MAX_FILES} files, or by names that are too long")


def _list_problems(entries: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    for info in entries:
        name = info.orig_filename  # as it is in the archive: zipfile cuts others at a NUL
        wrong = describe_wrong_name(name)
        mode = info.external_attr >> 16
        if wrong:
            yield f"{name!a} {wrong}"
        elif info.create_system != _UNIX or mode != _MODE:
            yield f"{name} is {_describe_mode(info, mode)}, and a pack holds plain files"
        elif info.flag_bits & _ENCRYPTED or info.compress_type not in _COMPRESSIONS:
            yield f"{name} is encrypted, or compressed in another way than deflate"
    names = [info.orig_filename for info in entries]
    yield from (
        f"{name!a} is there twice, or as file and folder" for name in list_collisions(names)
    )
    sizes = {info.filename: info.file_size for info in entries}
    if sum(sizes.values()) > MAX_BYTES + MAX_METADATA_BYTES:
        yield f"it would unpack to more than {MAX_BYTES >> 30} GiB"
    if sizes.get(METADATA_FILE, 0) > MAX_METADATA_BYTES:
        yield f"{METADATA_FILE} has more than {MAX_METADATA_BYTES >> 20} MiB"


def _describe_mode(info: zipfile.ZipInfo, mode: int) -> str:
    if info.create_system != _UNIX:
        return "of another system"
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFREG: f"of mode {mode:o}"}
    return kinds.get(stat.S_IFMT(mode), "a device, or something else that is no file")


def refuse_pack(file: Path, problems: Sequence[str]) -> ConfigurationError:
    """Return the error that a pack is none, or not whole: the first problems, and the remedy."""
    shown = [f"{file}: {problem}" for problem in problems[:_MAX_NAMED]]
    more = len(problems) - _MAX_NAMED
    if more > 0:
        shown.append(f"{file}: and {more} more like these")
    return ConfigurationError(
        [*shown, f"{file}: nothing was unpacked; get it again, or ask who made it"]
    )
