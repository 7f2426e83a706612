"""Container of results: a ZIP archive with one way to write a file, and a reader of just that.

PKWARE's APPNOTE 6.3.  First comes a list of all other files with their digests.  Order and times
are always the same, so the same files give the same bytes (by the same zlib).  The reader takes
plain files and nothing else: no folder, link, device, encryption or other compression; and it
trusts no size before it has counted.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.plain_file import open_plain
from testbed.base.units import format_bytes

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644
_UNIX = 3
_ENCRYPTED = 0x1
_LEVEL = 6
_PIECE = 1 << 20
_MAX_DIRECTORY_BYTES = 128 << 20
_MAX_NAMED = 20
_LONGEST_SEGMENT = 255  # bytes: NAME_MAX of limits.h(0p) on Linux
_LONGEST_NAME = 1024
_DEEPEST = 8
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_END = struct.Struct("<4s4H2LH")
"""End of central directory record, without its comment: section 4.3.16."""
_END_64 = struct.Struct("<4sQ2H2L4Q")
"""The same of ZIP64: section 4.3.14; its locator, of 20 bytes, is between the two."""
_LOCATOR_BYTES = 20
_BROKEN = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, ValueError,
           zlib.error, struct.error)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PackFormat:
    """A kind of pack.

    Attributes:
        title: what it is called, such as ``pack of results``.
        list_file: the name of the file that lists all others.
        remedy: what a refusal ends with.
        max_files: the most files that it may hold, besides the list.
        max_bytes: the most that they may have together, unpacked.
        max_list_bytes: the most that the list may have.
    """

    title: str
    list_file: str
    remedy: str
    max_files: int
    max_bytes: int
    max_list_bytes: int

    def refuse(self, file: Path, problems: Sequence[str]) -> ConfigurationError:
        """Return the error that ``file`` is no such pack, or not whole: the first problems."""
        shown = (*first_of(problems), self.remedy)
        return ConfigurationError([f"{file}: {each}" for each in shown])


def first_of(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and how many more there are."""
    more = len(problems) - _MAX_NAMED
    return [*problems[:_MAX_NAMED], *([f"and {more} more like these"] if more > 0 else [])]


@dataclass(frozen=True, slots=True)
class PackFile:
    """A file that belongs into a pack: its name there, and where it is."""

    name: str
    source: Path
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ListedFile:
    """What the list of a pack says of a file."""

    size: int
    sha256: str


def write_container(
    stream: BinaryIO, form: PackFormat, listing: bytes, files: Iterable[PackFile]
) -> None:
    """Write the archive: the list first, then ``files``, sorted by name.

    Raises:
        StorageError: a file is not what it was when its digest was taken, or cannot be read.
        OSError: the archive cannot be written.
    """
    with zipfile.ZipFile(stream, "w", compresslevel=_LEVEL) as archive:
        with archive.open(_header(form.list_file, len(listing)), "w") as target:
            target.write(listing)
        for file in sorted(files, key=lambda each: each.name):
            with archive.open(_header(file.name, file.size), "w") as target:
                seen = hashlib.sha256()
                for piece in _read(file.source):
                    seen.update(piece)
                    target.write(piece)
            if seen.hexdigest() != file.sha256:
                raise StorageError(
                    f"{file.source!s} changed while it was packed; pack it when its run has ended"
                )


def _read(source: Path) -> Iterator[bytes]:
    try:
        with source.open("rb") as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except OSError as error:
        raise StorageError(f"cannot read {source}: {error.strerror}") from None


def _header(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | _MODE) << 16
    info.file_size = size  # whether sizes take 32 or 64 bits
    return info


class Container:
    """An archive that is open, whose names, sizes and kinds of files are in order."""

    def __init__(
        self, archive: zipfile.ZipFile, form: PackFormat, entries: Mapping[str, zipfile.ZipInfo]
    ) -> None:
        self._archive = archive
        self._form = form
        self._entries = entries

    def read_list(self) -> bytes:
        """Return the list of all files; empty where there is none.

        Raises:
            ValueError: it is longer than the archive says.
        """
        if self._form.list_file not in self._entries:
            return b""
        return b"".join(self._pieces(self._form.list_file))

    def list_differences(self, listed: Mapping[str, ListedFile]) -> Iterator[str]:
        """Yield each difference between what the list says, and names and sizes of the files."""
        list_file = self._form.list_file
        for name in sorted({*listed, *self._entries} - {list_file}):
            info, entry = self._entries.get(name), listed.get(name)
            if entry is None:
                yield f"holds {name}, which {list_file} does not list"
            elif info is None:
                yield f"lacks {name!a}, which {list_file} lists"
            elif entry.size != info.file_size:
                yield f"{name} has {info.file_size} bytes; {list_file} says {entry.size}"
        if list_file in listed:
            yield f"{list_file} lists itself"

    def extract(self, name: str, target: Path, sha256: str) -> None:
        """Write one file to ``target``, which is not there.

        Raises:
            ValueError: it is not the bytes that ``sha256`` says, or the archive is damaged.
            OSError: it cannot be written.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        seen = hashlib.sha256()
        with target.open("xb") as stream:
            for piece in self._pieces(name):
                seen.update(piece)
                stream.write(piece)
        if seen.hexdigest() != sha256:
            raise ValueError(f"{name} has another SHA-256 than {self._form.list_file} says")

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
        except (*_BROKEN, OSError) as error:  # of a place that is none (lseek(2)), or a bad disk
            raise ValueError(f"{name}: damaged ({error})") from None
        if left:
            raise ValueError(f"{name}: damaged (another size than the archive says)")


@contextmanager
def open_container(file: Path, form: PackFormat) -> Iterator[Container]:
    """Yield the archive in ``file``, after a look at all that it says of its files.

    Raises:
        ConfigurationError: it is no plain file, no archive, cannot be read, or holds what no pack
            does: every problem; nothing of it was unpacked.
    """
    with open_plain(file) as stream:
        try:
            _check_directory(stream, form)
            stream.seek(0)
            archive = zipfile.ZipFile(stream)
        except OSError as error:
            raise ConfigurationError(
                [f"{file}: cannot be read: {error.strerror or error}"]
            ) from None
        except _BROKEN as error:
            raise form.refuse(file, [f"no {form.title}, or damaged: {error}"]) from None
        with archive:
            entries = archive.infolist()
            problems = list(_list_problems(entries, form))
            if problems:
                raise form.refuse(file, problems)
            yield Container(archive, form, {info.filename: info for info in entries})


def _check_directory(stream: BinaryIO, form: PackFormat) -> None:
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
    if count > form.max_files + 1 or length > _MAX_DIRECTORY_BYTES:
        raise ValueError(
            f"it names more than {form.max_files} files, or by names that are too long"
        )


def _list_problems(entries: Sequence[zipfile.ZipInfo], form: PackFormat) -> Iterator[str]:
    for info in entries:
        name = info.orig_filename  # as it is in the archive: zipfile cuts others at a NUL
        wrong = describe_wrong_name(name)
        mode = info.external_attr >> 16
        if wrong:
            yield f"{name!a} {wrong}"
        elif info.create_system != _UNIX or mode != stat.S_IFREG | _MODE:
            yield f"{name} is {_describe_mode(info, mode)}, and a pack holds plain files"
        elif info.flag_bits & _ENCRYPTED or info.compress_type not in _COMPRESSIONS:
            yield f"{name} is encrypted, or compressed in another way than deflate"
    names = [info.orig_filename for info in entries]
    yield from (
        f"{name!a} is there twice, or as file and folder" for name in list_collisions(names)
    )
    yield from (
        f"{info.filename} lies outside of the archive, or over another file"
        for info in _list_misplaced(entries)
    )
    sizes = {info.filename: info.file_size for info in entries}
    if sum(sizes.values()) > form.max_bytes + form.max_list_bytes:
        yield f"it would unpack to more than {format_bytes(form.max_bytes)}"
    if sizes.get(form.list_file, 0) > form.max_list_bytes:
        yield f"{form.list_file} has more than {format_bytes(form.max_list_bytes)}"


def _list_misplaced(entries: Sequence[zipfile.ZipInfo]) -> Iterator[zipfile.ZipInfo]:
    """Yield what begins before the archive, or before the one in front of it has ended."""
    end = 0
    for info in sorted(entries, key=lambda each: each.header_offset):
        if info.header_offset < end:
            yield info
        end = info.header_offset + info.compress_size


def _describe_mode(info: zipfile.ZipInfo, mode: int) -> str:
    if info.create_system != _UNIX:
        return "of another system"
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFREG: f"of mode {mode:o}"}
    return kinds.get(stat.S_IFMT(mode), "a device, or something else that is no file")


def describe_wrong_name(name: str) -> str:
    """Say what is wrong with the path of a file in a pack; empty: it leads nowhere else."""
    segments = name.split("/")
    if not name.isprintable() or "\\" in name or not name.isascii():
        return "has characters other than printable ASCII, or a backslash"
    if name.startswith("/") or any(segment in ("", ".", "..") for segment in segments):
        return "leads out of the folder, or is no plain path"
    if len(name) > _LONGEST_NAME or len(segments) > _DEEPEST:
        return f"is longer than {_LONGEST_NAME} characters or deeper than {_DEEPEST} folders"
    if any(len(segment) > _LONGEST_SEGMENT for segment in segments):
        return f"has a part of more than {_LONGEST_SEGMENT} characters"
    return ""


def list_collisions(names: Iterable[str]) -> Iterator[str]:
    """Yield each name that is there twice, or is a file as well as a folder."""
    files: set[str] = set()
    folders: set[str] = set()
    for name in names:
        above = name.split("/")[:-1]
        if name in files:
            yield name
        files.add(name)
        folders |= {"/".join(above[: depth + 1]) for depth in range(len(above))}
    yield from sorted(files & folders)
