"""Pack of a root or a kernel: one TAR file of all that a run takes on a machine without a network.

First come the packages of a small root with Python, ``packages/<sha256>.deb``, for a shell; then
``pack.json``, which lists the rest; then each part of the cache as ``parts/NAME.tar.xz``; of an
artifact also ``results.zip`` and ``source.tar.gz`` (``wings.packs.artifact``).  Equal parts give
equal bytes (by the same liblzma).  Its digests protect from damage; they say nothing about who made
it (docs/security.md).  Standard library only: a machine may have no Python packages but these.
"""

from __future__ import annotations

import io
import json
import lzma
import platform
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import IO, Any, BinaryIO, TypeVar, cast

from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.plain_file import open_plain
from testbed.base.whole_file import open_whole, refuse_existing
from testbed.root.assembly import TIME_S, Assembly, list_files
from testbed.root.package import Section
from testbed.setup.parts import KINDS, CachePart

FORMAT = 1
LIST_FILE = "pack.json"
RESULTS_MEMBER, SOURCE_MEMBER = "results.zip", "source.tar.gz"
FILTERS = ({"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 64 << 20})
"""Machine code is compressed a tenth better after the first; the dictionary is what the second
costs in memory, for reading as well."""
_MOST_LIST_BYTES = 4 << 20
_MOST_FILES = 200_000  # a root has 7,000
_LARGE_BYTES = 100 << 20
_AT_ONCE = 2
_END_BYTES = 1024  # of zeros: how an archive ends (tar(5))
_PACKAGE = re.compile(r"packages/([0-9a-f]{64})\.deb")
_FOLDER = re.compile(r"[a-z]+(/[a-z]+)?/[A-Za-z0-9][A-Za-z0-9._-]*")
_BROKEN = (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, OverflowError)
_REMEDY = "nothing of it was used; get it again, or export it again in a tree of this version"

Progress = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A part in a pack: the digest of its files, their bytes, and what it was made from."""

    part: CachePart
    digest: str
    size: int
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RootPack:
    """A pack: its members by their names, and what its list says."""

    file: Path
    members: Mapping[str, tarfile.TarInfo]
    machine: str
    parts: tuple[PackedPart, ...]

    @property
    def packages(self) -> dict[str, str]:
        """SHA-256 of each package by its member's name."""
        return {name: match[1] for name in self.members if (match := _PACKAGE.fullmatch(name))}

    def refuse(self, problems: Sequence[str]) -> ConfigurationError:
        """Return the error that the pack is not whole, or does not fit."""
        return _refuse(self.file, problems)

    @contextmanager
    def open(self, name: str) -> Iterator[io.BufferedReader]:
        """Yield the content of a member."""
        with self.file.open("rb") as stream:
            stream.seek(self.members[name].offset_data)
            yield io.BufferedReader(Section(stream, self.members[name].size))


def write_pack(
    file: Path, parts: Mapping[CachePart, Path], progress: Progress, *,
    packages: Sequence[Path] = (), beside: Mapping[str, Path] | None = None, replace: bool = False,
) -> str:  # fmt: skip
    """Write ``parts``, with where each is, and ``packages`` to ``file``; return its SHA-256.

    ``beside`` are an artifact's further files, by their names in it.

    Raises:
        ConfigurationError: the file is there and is not to be replaced.
        StorageError: it cannot be written, or what belongs into it cannot be read.
    """
    refuse_existing(file, replace=replace)
    packed = [_describe(part, place) for part, place in parts.items()]
    total = sum(each.size for each in packed)
    progress(f"compressing {total / 1e6:.0f} MB{', some minutes' if total > _LARGE_BYTES else ''}")
    members = {f"packages/{package.name}": package for package in packages}
    with (
        open_whole(file, "choose another place") as stream,
        TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as folder,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        scratch = Path(folder)
        (scratch / LIST_FILE).write_text(_render_list(packed))
        compressed = {_member(part): scratch / part.name for part in parts}
        _each(
            list(parts.items()),
            lambda each, stop: _compress(*each, compressed[_member(each[0])], stop),
        )
        members |= {LIST_FILE: scratch / LIST_FILE, **compressed, **(beside or {})}
        for name, path in members.items():
            with path.open("rb") as content:
                archive.addfile(_header(name, path.stat().st_size), content)
    return file_sha256(file)


def read_pack(file: Path) -> RootPack:
    """Return a pack, after a look at all that it says of its members.

    Raises:
        ConfigurationError: it is no pack, or not whole; every problem.
    """
    with open_plain(file) as stream:
        try:
            members = _read_members(stream)
            stream.seek(members[LIST_FILE].offset_data)
            text = stream.read(min(members[LIST_FILE].size, _MOST_LIST_BYTES))
            machine, parts = _parse_list(text)
        except KeyError:
            raise _refuse(
                file, [f"is no pack of a root or a kernel: it has no {LIST_FILE}"]
            ) from None
        except OSError as error:
            raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from None
        except _BROKEN as error:
            raise _refuse(
                file, [f"is no pack of a root or a kernel, or damaged: {error}"]
            ) from None
    pack = RootPack(file, members, machine, parts)
    if problems := list(_list_strangers(pack)):
        raise pack.refuse(problems)
    return pack


def is_pack(file: Path) -> bool:
    """Return whether a file begins as a TAR archive does, and a pack of results does not."""
    with open_plain(file) as stream:
        return stream.read(262)[257:] == b"ustar"


def extract_part(pack: RootPack, packed: PackedPart, place: Path, stop: Event) -> None:
    """Write the files of a part into ``place``, which is empty.

    Raises:
        ConfigurationError: it is damaged, or not what the pack says.
        OSError: it cannot be written.
    """
    part = packed.part
    target = part.files(place)
    target.mkdir(parents=True)
    assembly, left = Assembly(target, ()), packed.size
    try:
        with (
            pack.open(_member(part)) as content,
            lzma.open(content) as plain,
            tarfile.open(fileobj=cast(IO[bytes], plain), mode="r|") as archive,
        ):
            for number, member in enumerate(archive):
                left -= member.size
                if left < 0 or number >= _MOST_FILES or stop.is_set():
                    raise ValueError("it has more files than the pack says")
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise ValueError(f"its path {member.name!a} leads out of it")
                assembly.write(part.name, member.name, member, archive)
    except (*_BROKEN, StorageError) as error:
        raise pack.refuse([f"{part.title}: damaged: {error}"]) from None
    if part.digest(place) != packed.digest:
        raise pack.refuse([f"{part.title}: damaged: its files are not those that the pack names"])


def extract_parts(pack: RootPack, packed: Sequence[PackedPart], folder: Path) -> dict[str, Path]:
    """Write parts into folders of ``folder``, some at once; return them by their names.

    Raises:
        As ``extract_part``.
    """
    places = {each.part.name: folder / each.part.name for each in packed}
    _each(packed, lambda each, stop: extract_part(pack, each, places[each.part.name], stop))
    return places


def _each(items: Sequence[T], work: Callable[[T, Event], None]) -> None:
    """Do ``work`` for each of ``items``, some at once; it is told when another has failed."""
    stop = Event()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pack") as workers:
        try:
            for future in [workers.submit(work, item, stop) for item in items]:
                future.result()
        except BaseException:
            stop.set()
            workers.shutdown(wait=False, cancel_futures=True)
            raise


def _compress(part: CachePart, place: Path, target: Path, stop: Event) -> None:
    """Write what is carried of a part as a compressed archive; equal files give equal bytes."""
    with (
        lzma.open(target, "wb", filters=[*FILTERS]) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in list_files(part.files(place), KINDS[part.kind].left_out):
            header = _header(name, 0)
            if path.is_symlink():
                header.type, header.linkname = tarfile.SYMTYPE, str(path.readlink())
                archive.addfile(header)
            elif path.is_dir():
                header.type, header.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(header)
            else:
                status = path.stat()
                header.size = status.st_size
                header.mode = 0o755 if status.st_mode & 0o111 else 0o644
                with path.open("rb") as content:
                    archive.addfile(header, cast(IO[bytes], _Watched(content, stop)))


class _Watched:
    """A file that is read until another thread says stop."""

    def __init__(self, stream: BinaryIO, stop: Event) -> None:
        self._stream, self._stop = stream, stop

    def read(self, size: int = -1) -> bytes:
        return b"" if self._stop.is_set() else self._stream.read(size)


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = size, TIME_S, 0o644
    return header


def _member(part: CachePart) -> str:
    return f"parts/{part.name}.tar.xz"


def _describe(part: CachePart, place: Path) -> PackedPart:
    files = (path for _, path in list_files(part.files(place), KINDS[part.kind].left_out))
    size = sum(path.lstat().st_size for path in files if path.is_file() and not path.is_symlink())
    return PackedPart(part, part.digest(place), size, part.list_sources())


def _render_list(packed: Sequence[PackedPart]) -> str:
    parts = [
        {"kind": each.part.kind, "variant": each.part.variant, "folder": each.part.folder,
         "digest": each.digest, "bytes": each.size, "sources": dict(each.sources)}
        for each in packed
    ]  # fmt: skip
    document = {"format": FORMAT, "machine": platform.machine(), "parts": parts}
    return json.dumps(document, indent=2) + "\n"


def _read_members(stream: BinaryIO) -> dict[str, tarfile.TarInfo]:
    """Return the members of a pack, each a plain file that is there as a whole.

    Raises:
        TarError, ValueError: they are not.
    """
    end = stream.seek(0, 2)
    stream.seek(0)
    members: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in archive:
            if not member.isreg() or member.pax_headers or member.name in members:
                raise ValueError(f"{member.name!a} is no plain file, or is there twice")
            if member.offset_data + member.size > end:
                raise ValueError(f"it ends in the middle of {member.name!a}")
            members[member.name] = member
        whole = archive.offset + _END_BYTES
    if end != whole + -whole % tarfile.RECORDSIZE:
        raise ValueError("it does not end as an archive does")
    return members


def _parse_list(text: bytes) -> tuple[str, tuple[PackedPart, ...]]:
    """Return the machine and the parts that a list names.

    Raises:
        ValueError: it is none, or of another format.
    """
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"is of format {document['format']!a}; this version reads {FORMAT}")
        return str(document["machine"]), tuple(map(_parse_part, document["parts"]))
    except (LookupError, TypeError, AttributeError, RecursionError, json.JSONDecodeError):
        raise ValueError(f"{LIST_FILE} is not as ./run.sh root export writes it") from None


def _parse_part(entry: Mapping[str, Any]) -> PackedPart:
    kind, variant, folder = (entry[name] for name in ("kind", "variant", "folder"))
    fits = (
        _FOLDER.fullmatch(folder)
        and re.fullmatch(r"[a-z0-9._-]*", variant)
        and folder.rpartition("/")[0] == KINDS[kind].kept_in
        and re.fullmatch(r"[0-9a-f]{64}", entry["digest"])
        and type(entry["bytes"]) is int
        and all(isinstance(word, str) for pair in entry["sources"].items() for word in pair)
    )
    if not fits:
        raise ValueError(f"{LIST_FILE} names a part that no pack has: {folder!a}")
    return PackedPart(
        CachePart(kind, variant, folder), entry["digest"], entry["bytes"], entry["sources"]
    )


def _list_strangers(pack: RootPack) -> Iterator[str]:
    wanted = {LIST_FILE, *(_member(each.part) for each in pack.parts)}
    there = pack.members.keys() - pack.packages.keys() - {RESULTS_MEMBER, SOURCE_MEMBER}
    yield from (f"holds {name!a}, which no pack does" for name in sorted(there - wanted))
    yield from (f"lacks {name}, which {LIST_FILE} names" for name in sorted(wanted - there))
    if len(wanted) <= len(pack.parts):
        yield f"{LIST_FILE} names a part twice"


def _refuse(file: Path, problems: Sequence[str]) -> ConfigurationError:
    return ConfigurationError(
        [*(f"{file}: {problem}" for problem in problems), f"{file}: {_REMEDY}"]
    )
