"""A kernel in a cache and C programs as they are built, made up in a moment."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed.base.checksums import write_checksums
from testbed.kernel.build.cache import KernelBuild, build_folder, identify, write_identity
from testbed.kernel.build.native import native_folder
from testbed.kernel.build.pin import read_pin
from testbed.kernel.build.toolchain import read_name

LINUX = b"\x7fELF a kernel"
PROGRAMS = {"init": b"the first process", "tfo.so": b"a shim"}


def keep_build(cache: Path, binary: bytes = LINUX) -> KernelBuild:
    """Put a made-up build of the default kernel into ``cache``."""
    pin = read_pin("7.3")
    folder = build_folder(pin, cache)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "linux").write_bytes(binary)
    (folder / "linux").chmod(0o755)
    (folder / "build.log").write_text("CC hello.o\n")
    identity = identify(pin, read_name(), hashlib.sha256(binary).hexdigest())
    write_identity(folder, identity)
    return KernelBuild(folder / "linux", identity, pin.boot)


def keep_programs(cache: Path) -> Path:
    """Put made-up C programs into ``cache``."""
    folder = native_folder(cache)
    folder.mkdir(parents=True)
    for name, data in PROGRAMS.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
    write_checksums(folder)
    return folder
