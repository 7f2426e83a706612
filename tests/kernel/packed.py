"""A kernel in a cache and C programs as bootstrap leaves them, made up in a moment."""

from __future__ import annotations

import hashlib
from pathlib import Path

from testbed.kernel.build.cache import KernelBuild, build_folder, identify, write_identity
from testbed.kernel.build.compiler import read_compiler
from testbed.kernel.build.pin import read_pin

LINUX = b"\x7fELF a kernel GLIBC_2.3 GLIBC_2.17 GLIBC_2.4\0"
PROGRAMS = {"init": b"the first process", "tfo.so": b"a shim GLIBC_2.2.5"}
SOURCES_KEY = "0123456789abcdef"


def keep_build(cache: Path, compiler: str | None = None, binary: bytes = LINUX) -> KernelBuild:
    """Put a made-up build of the default kernel into ``cache``, by this machine's compiler."""
    pin, compiler = read_pin("7.3"), compiler or read_compiler()
    folder = build_folder(pin, compiler, cache)
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(binary)
    (folder / "linux").chmod(0o755)
    (folder / "build.log").write_text("CC hello.o\n")
    identity = identify(pin, compiler, hashlib.sha256(binary).hexdigest())
    write_identity(folder, identity)
    return KernelBuild(folder / "linux", identity, pin.boot)


def keep_programs(cache: Path) -> Path:
    """Put made-up C programs into ``cache``."""
    folder = cache / "native" / f"{SOURCES_KEY}-{'f' * 16}"
    (folder / ".contents").mkdir(parents=True)
    sums, modes = [], []
    for name, data in PROGRAMS.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
        sums.append(f"{hashlib.sha256(data).hexdigest()}  ./{name}\n")
        modes.append(f"./{name} 755 \n")
    (folder / ".contents" / "sha256").write_text("".join(sums))
    (folder / ".contents" / "modes").write_text("".join(modes))
    (folder / ".contents" / "listing").write_text("times of this machine\n")
    return folder
