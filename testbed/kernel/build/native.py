"""C programs of the testbed, compiled by the toolchain: ``testbed/native``.

A source with a ``main`` becomes a static program, which runs with any C library or none.  Any
other becomes a shared object, which must run with the C library of each root.

Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from testbed.base import proc
from testbed.base.checksums import damaged_files, file_sha256, write_checksums
from testbed.base.errors import caching
from testbed.base.locks import locked
from testbed.base.places import ROOT
from testbed.kernel.build.cache import new_build
from testbed.kernel.build.compiler import BuildError
from testbed.kernel.build.toolchain import Progress, Toolchain, ensure_toolchain, read_name

NATIVE = "native"
"""The folder of their builds in the cache."""
SOURCES = ROOT / "testbed" / "native"
OLDEST_LIBC = (2, 34)
"""The C library that each shared object runs with: older than that of any root."""

_RECIPE = "1"  # raise when the steps below change a program
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_MAIN = re.compile(r"^(int )?main\(", re.MULTILINE)
_LIBC = re.compile(rb"\bGLIBC_(\d+)\.(\d+)")
_COMPILE_S = 120.0


def program_sources() -> dict[str, str]:
    """Return the SHA-256 of each file that they are made from, by its name."""
    return {file.name: file_sha256(file) for file in sorted(SOURCES.glob("*.[ch]"))}


def programs_key(sources: Mapping[str, str]) -> str:
    """Return 16 hex digits that name all that the programs of ``sources`` are made of."""
    made_of = {"sources": dict(sources), "compiler": read_name(), "recipe": _RECIPE}
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def native_folder(cache: Path) -> Path:
    """Return where the programs of this tree are, or will be."""
    return cache / NATIVE / programs_key(program_sources())


def is_whole(folder: Path) -> bool:
    """Return whether ``folder`` has the programs as they were made."""
    return folder.is_dir() and not damaged_files(folder)


def find_native(cache: Path) -> Path | None:
    """Return the folder of the C programs; ``None``: they are not made, or damaged."""
    folder = native_folder(cache)
    return folder if is_whole(folder) else None


def ensure_native(cache: Path, progress: Progress) -> Path:
    """Return the folder of the C programs, made below ``cache`` if need be.

    Raises:
        MissingError: the toolchain is not to be had.
        BuildError: one does not compile.
        StorageError: the cache cannot be written.
    """
    folder = native_folder(cache)
    if is_whole(folder):
        return folder
    toolchain = ensure_toolchain(cache, progress)
    lock, waiting = folder.parent / "lock", "waiting for another run's C programs"
    with caching(f"write {folder}"), locked(lock, waiting, progress):
        if not is_whole(folder):
            again = f" again: {folder} is damaged" if folder.exists() else ""
            progress(f"compiling the C programs{again}")
            with new_build(folder) as work:
                for source in sorted(SOURCES.glob("*.c")):
                    compile_program(source, work, toolchain)
                write_checksums(work)
    return folder


def compile_program(source: Path, folder: Path, toolchain: Toolchain) -> Path:
    """Compile one ``source`` into ``folder``, and return the program or shared object.

    Raises:
        BuildError: it does not compile, or would need a newer C library than ``OLDEST_LIBC``.
    """
    alone = _MAIN.search(source.read_text("utf-8")) is not None
    target = folder / (source.stem if alone else f"{source.stem}.so")
    kind = ("-static",) if alone else ("-shared", "-fPIC")
    # By its name alone, so that the place of the tree is in no message of a program.
    argv = (toolchain.program("gcc"), f"--sysroot={toolchain.folder}", *_FLAGS, *kind,
            "-o", str(target), source.name)  # fmt: skip
    done = proc.run(
        argv, cwd=source.parent, env=toolchain.environment, timeout_s=_COMPILE_S, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{source} does not compile:\n{done.stderr.strip()[-3000:]}")
    if not alone and (newer := read_libc(target.read_bytes())) > OLDEST_LIBC:
        raise BuildError(f"{source} needs the C library {newer[0]}.{newer[1]}, which no root has")
    target.chmod(0o755)
    return target


def read_libc(shared: bytes) -> tuple[int, int]:
    """Return the oldest C library that a shared object runs with, by the symbols that it names."""
    versions = (match.groups() for match in _LIBC.finditer(shared))
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))
