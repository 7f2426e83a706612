"""A cache with a root, a kernel, C programs and Python packages, made up in a moment."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.model import DEFAULT_ROOT
from testbed.root.assembly import digest_files
from testbed.root.cache import note_root, root_place
from testbed.root.spec import read_spec
from testbed.setup.parts import CachePart
from testbed.setup.python_packages import RUN, packages_place
from testbed.setup.root_pack import write_pack
from tests.kernel.packed import keep_build, keep_programs

PACKAGE = b"!<arch>\nwould be Python"


def keep_root(place: Path, text: str = "a shell") -> str:
    """Put a made-up root into ``place``; return its digest."""
    (place / "usr" / "bin").mkdir(parents=True)
    (place / "usr" / "lib" / "empty").mkdir(parents=True)
    (place / "usr" / "bin" / "sh").write_text(text)
    (place / "usr" / "bin" / "sh").chmod(0o755)
    (place / "usr" / "lib" / "libc.so").write_bytes(bytes(range(256)) * 400)
    (place / "usr" / "lib64").symlink_to("lib")
    digest = digest_files(place / "usr")
    note_root(place, digest)
    return digest


def keep_parts(cache: Path) -> dict[CachePart, Path]:
    """Put a part of each kind into ``cache``."""
    root = root_place(read_spec(DEFAULT_ROOT), cache)
    keep_root(root)
    environment = packages_place(RUN, cache)
    modules = environment / "lib" / "python3.13" / "site-packages"
    (modules / "__pycache__").mkdir(parents=True)
    (modules / "module.py").write_text("answer = 42\n")
    (modules / "__pycache__" / "module.cpython-313.pyc").write_text("of this machine")
    kernel = keep_build(cache).binary.parent
    programs = keep_programs(cache)
    return {CachePart("root", DEFAULT_ROOT, f"roots/assembled/{root.name}"): root,
            CachePart("kernel", "7.3", f"kernels/{kernel.name}"): kernel,
            CachePart("programs", "", f"native/{programs.name}"): programs,
            CachePart("python", "", f"venv/{environment.name}"): environment}  # fmt: skip


def keep_package(folder: Path) -> Path:
    """Write a made-up package as the cache has it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{hashlib.sha256(PACKAGE).hexdigest()}.deb"
    file.write_bytes(PACKAGE)
    return file


def pack_parts(file: Path, cache: Path) -> Path:
    """Write a pack of made-up parts, which are put into ``cache``."""
    package = keep_package(cache / "roots" / "packages")
    write_pack(file, keep_parts(cache), lambda _: None, packages=[package])
    return file


def rewrite(file: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Write a pack anew with what ``change`` makes of each member; ``None``: without it."""
    with tarfile.open(file) as archive:
        members = [(each.name, archive.extractfile(each).read()) for each in archive]  # type: ignore[union-attr]
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            if (changed := change(name, data)) is not None:
                header = tarfile.TarInfo(name)
                header.size = len(changed)
                archive.addfile(header, io.BytesIO(changed))


def change_list(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what the pack's list says."""

    def each(name: str, data: bytes) -> bytes:
        if name != "pack.json":
            return data
        document = json.loads(data)
        change(document)
        return json.dumps(document).encode()

    rewrite(file, each)
