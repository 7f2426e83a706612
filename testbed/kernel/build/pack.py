"""Kernel pack: a built kernel and the C programs in one archive, for machines without a compiler.

A tar file (ustar, POSIX.1-1988) in an xz container: ``manifest.json``, then ``linux`` and
``programs/``, sorted; of a kernel of the user's own also its definition.  It holds no time, user or
path, so the same build gives the same bytes.  A reader takes those bytes and nothing else: each
header is compared with the one that a writer makes, so that no link, device, other path or further
file can be in it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.base.errors import ConfigurationError
from testbed.base.plain_file import open_plain
from testbed.kernel.build.cache import BINARY_FILE, KernelIdentity

FORMAT = 1
MANIFEST_FILE = "manifest.json"
PROGRAMS_FOLDER = "programs"
OWN_FOLDER = "own"
"""What a kernel of the user's own is made of, as ``testbed.kernel.own.definition`` keeps it."""
MAX_BYTES = 128 << 20
"""The most that a pack may hold; one of ours holds 10 MB."""
_MEMORY_BYTES = 256 << 20
_MAX_MANIFEST_BYTES = 1 << 20
_BLOCK = tarfile.BLOCKSIZE
_GLIBC = re.compile(rb"\bGLIBC_(\d+)\.(\d+)")

_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_PROGRAM = rf"{PROGRAMS_FOLDER}/(\.contents/)?[a-z][a-z0-9.-]*"
_OWN = rf"{OWN_FOLDER}/(kernel\.json|patches/[0-9]{{4}}-[a-z0-9-]+\.patch)"
_Name = Annotated[str, Field(pattern=rf"^({BINARY_FILE}|{_PROGRAM}|{_OWN})$")]


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file's permissions and content."""

    mode: int
    data: bytes


@dataclass(frozen=True, slots=True)
class KernelPack:
    """What a pack holds.

    Attributes:
        identity: what the kernel was built from.
        machine: the architecture that it runs on.
        glibc: the oldest C library that it runs with, such as ``2.34``.
        programs: what the folder of the C programs is named by, less their compiler.
        sources: SHA-256 of each file that they are made from, by its path in the work tree.
        files: the kernel and the programs by their names in the pack.
    """

    identity: KernelIdentity
    machine: str
    glibc: str
    programs: str
    sources: Mapping[str, str]
    files: Mapping[str, PackedFile]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    bytes: Annotated[int, Field(ge=0, le=MAX_BYTES)]
    mode: Annotated[str, Field(pattern=r"^[0-7]{3}$")]
    sha256: _Hex


class _Manifest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal[1]
    kernel: KernelIdentity
    machine: str
    glibc: Annotated[str, Field(pattern=r"^\d{1,3}\.\d{1,3}$")]
    programs: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    sources: dict[str, _Hex]
    files: dict[_Name, _Part]


def render_pack(pack: KernelPack) -> bytes:
    """Return the archive, the same for equal packs."""
    return lzma.compress(_render_archive(pack), check=lzma.CHECK_SHA256)


def read_pack(file: Path) -> KernelPack:
    """Read a pack and check every byte of it.

    Raises:
        ConfigurationError: it is no pack, or not whole, or not one that ``render_pack`` makes; or
            it cannot be read.
    """
    try:
        with open_plain(file) as stream:
            packed = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from None
    try:
        return _parse_pack(_decompress(packed))
    except ValueError as error:
        raise ConfigurationError(
            [f"{file}: {error}; nothing was imported; get or export it again"]
        ) from None


def oldest_glibc(files: Mapping[str, PackedFile]) -> str:
    """Return the oldest C library that all of ``files`` run with, by the symbols that they name."""
    found = (match.groups() for file in files.values() for match in _GLIBC.finditer(file.data))
    major, minor = max(((int(major), int(minor)) for major, minor in found), default=(2, 0))
    return f"{major}.{minor}"


def _decompress(packed: bytes) -> bytes:
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES)
    try:
        archive = decompressor.decompress(packed, MAX_BYTES)
    except lzma.LZMAError as error:
        raise ValueError(f"no kernel pack, or damaged ({error})") from None
    if decompressor.unused_data:
        raise ValueError("goes on behind its end")
    if not decompressor.eof:
        large = len(packed) > MAX_BYTES or len(archive) == MAX_BYTES
        raise ValueError("too large for a kernel pack" if large else "cut short")
    return archive


def _parse_pack(archive: bytes) -> KernelPack:
    manifest, rest = _split_manifest(archive)
    files: dict[str, PackedFile] = {}
    for name, part in sorted(manifest.files.items()):
        header, rest = rest[:_BLOCK], rest[_BLOCK:]
        if header != _header(name, part.bytes, int(part.mode, 8)):
            raise ValueError(f"holds {_describe(header)} where {name} belongs")
        data, rest = rest[: part.bytes], rest[len(_padded(rest[: part.bytes])) :]
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise ValueError(f"{name} has another SHA-256 than {MANIFEST_FILE} says")
        files[name] = PackedFile(int(part.mode, 8), data)
    if rest.strip(b"\0"):
        raise ValueError(f"holds {_describe(rest[:_BLOCK])}, which {MANIFEST_FILE} does not name")
    pack = KernelPack(
        manifest.kernel,
        manifest.machine,
        manifest.glibc,
        manifest.programs,
        manifest.sources,
        files,
    )
    binary = manifest.files.get(BINARY_FILE)
    if binary is None or binary.sha256 != pack.identity.binary_sha256:
        raise ValueError(f"holds no {BINARY_FILE}, or another than the build that it names")
    if archive != _render_archive(pack):
        raise ValueError("is not as ./run.sh kernel export writes it")
    return pack


def _split_manifest(archive: bytes) -> tuple[_Manifest, bytes]:
    """Return the manifest, and the archive behind it."""
    try:
        first = tarfile.TarInfo.frombuf(archive[:_BLOCK], "ascii", "strict")
    except (tarfile.HeaderError, ValueError):
        raise ValueError("no kernel pack: there is no tar archive in it") from None
    if first.name != MANIFEST_FILE or not 0 <= first.size <= _MAX_MANIFEST_BYTES:
        raise ValueError(f"no kernel pack: it begins with {first.name!a}, not {MANIFEST_FILE}")
    text = archive[_BLOCK : _BLOCK + first.size]
    return _parse_manifest(text), archive[_BLOCK + len(_padded(text)) :]


def _parse_manifest(text: bytes) -> _Manifest:
    if b"\\" in text:  # what of ours is in a manifest needs no escape; a terminal would obey some
        raise ValueError(f"{MANIFEST_FILE} has characters that no kernel's has")
    try:
        form = json.loads(text)["format"]
        if form != FORMAT:
            raise ValueError(f"is of format {form!a}, and this version reads format {FORMAT}")
        return _Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{MANIFEST_FILE}: {where}: {first['msg']}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, LookupError, TypeError):
        raise ValueError(f"no kernel pack: {MANIFEST_FILE} is none of one") from None


def _render_archive(pack: KernelPack) -> bytes:
    text = _render_manifest(pack)
    parts = [_header(MANIFEST_FILE, len(text), 0o644), _padded(text)]
    for name, file in sorted(pack.files.items()):
        parts += [_header(name, len(file.data), file.mode), _padded(file.data)]
    archive = b"".join([*parts, bytes(2 * _BLOCK)])
    return archive + bytes(-len(archive) % tarfile.RECORDSIZE)


def _render_manifest(pack: KernelPack) -> bytes:
    files = {
        name: {
            "bytes": len(file.data),
            "mode": f"{file.mode:03o}",
            "sha256": hashlib.sha256(file.data).hexdigest(),
        }
        for name, file in sorted(pack.files.items())
    }
    document = {
        "format": FORMAT,
        "kernel": asdict(pack.identity),
        "machine": pack.machine,
        "glibc": pack.glibc,
        "programs": pack.programs,
        "sources": dict(sorted(pack.sources.items())),
        "files": files,
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def _header(name: str, size: int, mode: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, mode
    return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _BLOCK)


def _describe(header: bytes) -> str:
    """Return what a header of an archive stands for, for a message."""
    try:
        info = tarfile.TarInfo.frombuf(header, "ascii", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return "nothing that can be read"
    kinds = {tarfile.SYMTYPE: "a link", tarfile.LNKTYPE: "a link", tarfile.DIRTYPE: "a folder"}
    kind = "a file" if info.isreg() else kinds.get(info.type, "no file")
    return f"{info.name!a} ({kind})"
