"""Kernel pack: a built kernel and the C programs in one archive, so that machines need not compile.

A container with ``manifest.json``, ``linux`` and ``programs/``; of a kernel of the user's own also
its definition.  It holds no time, user or path, so the same build gives the same bytes.  A reader
takes what the manifest names, and no other names than those of kernels.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.base.checksums import CHECKSUMS_FILE
from testbed.base.container import (
    Container,
    ListedFile,
    PackFile,
    PackFormat,
    open_container,
    write_container,
)
from testbed.base.errors import ConfigurationError
from testbed.base.plain_file import open_plain
from testbed.kernel.build.cache import BINARY_FILE, KernelIdentity

FORMAT = 3
MANIFEST_FILE = "manifest.json"
PROGRAMS_FOLDER = "programs"
OWN_FOLDER = "own"
"""What a kernel of the user's own is made of, as ``wings.kernels.own.definition`` keeps it."""
KERNEL_PACK = PackFormat(
    title="kernel pack",
    list_file=MANIFEST_FILE,
    remedy="nothing was imported; get or export it again",
    max_files=10_000,
    max_bytes=128 << 20,  # one of ours holds 10 MB
    max_list_bytes=4 << 20,
)
_FORMAT_1 = b"\xfd7zXZ"

_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_PROGRAM = rf"{PROGRAMS_FOLDER}/({CHECKSUMS_FILE}|[a-z][a-z0-9.-]*)"
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
        programs: what names the folder of the C programs.
        sources: SHA-256 of each file that they are made from, by its name.
        files: the kernel and the programs by their names in the pack.
    """

    identity: KernelIdentity
    machine: str
    programs: str
    sources: Mapping[str, str]
    files: Mapping[str, PackedFile]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    bytes: Annotated[int, Field(ge=0)]
    mode: Annotated[str, Field(pattern=r"^[0-7]{3}$")]
    sha256: _Hex


class _Manifest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal[3]
    kernel: KernelIdentity
    machine: str
    programs: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    sources: dict[str, _Hex]
    files: dict[_Name, _Part]


def render_pack(pack: KernelPack) -> bytes:
    """Return the archive, the same for equal packs."""
    stream = io.BytesIO()
    write_container(stream, KERNEL_PACK, _render_manifest(pack), _list_files(pack))
    return stream.getvalue()


def read_pack(file: Path) -> KernelPack:
    """Read a pack and check all of it.

    Raises:
        ConfigurationError: it is no pack, or not whole, or not one that ``render_pack`` makes; or
            it cannot be read.
    """
    try:
        with open_plain(file) as stream:
            if stream.read(len(_FORMAT_1)) == _FORMAT_1:
                raise KERNEL_PACK.refuse(
                    file,
                    [
                        f"is of format 1, and this version reads {FORMAT}: export it again in "
                        "a tree of this version"
                    ],
                )
        with open_container(file, KERNEL_PACK) as container:
            return _read_container(file, container)
    except ValueError as error:
        raise KERNEL_PACK.refuse(file, [str(error)]) from None
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from None


def _read_container(file: Path, container: Container) -> KernelPack:
    """Return what is in it.

    Raises:
        ConfigurationError: it is not what its manifest says; every difference.
        ValueError: it is damaged, or is no kernel's.
    """
    text = container.read_list()
    manifest = _parse_manifest(text)
    listed = {
        name: ListedFile(part.bytes, part.sha256, int(part.mode, 8))
        for name, part in manifest.files.items()
    }
    problems = list(container.list_differences(listed))
    if problems:
        raise KERNEL_PACK.refuse(file, problems)
    binary = listed.get(BINARY_FILE)
    if binary is None or binary.sha256 != manifest.kernel.binary_sha256:
        raise ValueError(f"holds no {BINARY_FILE}, or another than the build that it names")
    pack = KernelPack(
        manifest.kernel,
        manifest.machine,
        manifest.programs,
        manifest.sources,
        {
            name: PackedFile(part.mode, container.read(name, part.sha256))
            for name, part in sorted(listed.items())
        },
    )
    if text != _render_manifest(pack):
        raise ValueError("is not as ./run.sh kernel export writes it")
    return pack


def _parse_manifest(text: bytes) -> _Manifest:
    try:
        form = json.loads(text)["format"]
        if form != FORMAT:
            raise ValueError(f"is of format {form!a}, and this version reads format {FORMAT}")
        if b"\\" in text:  # ours need no escape, and a terminal would obey what some stand for
            raise ValueError(f"{MANIFEST_FILE} has characters that no kernel's has")
        return _Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{MANIFEST_FILE}: {where}: {first['msg']}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, LookupError, TypeError):
        raise ValueError(f"no kernel pack: {MANIFEST_FILE} is none of one") from None


def _list_files(pack: KernelPack) -> Iterator[PackFile]:
    for name, file in sorted(pack.files.items()):
        digest = hashlib.sha256(file.data).hexdigest()
        yield PackFile(name, file.data, len(file.data), digest, file.mode)


def _render_manifest(pack: KernelPack) -> bytes:
    files = {
        file.name: {"bytes": file.size, "mode": f"{file.mode:03o}", "sha256": file.sha256}
        for file in _list_files(pack)
    }
    document = {
        "format": FORMAT,
        "kernel": asdict(pack.identity),
        "machine": pack.machine,
        "programs": pack.programs,
        "sources": dict(sorted(pack.sources.items())),
        "files": files,
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")
