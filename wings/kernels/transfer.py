"""Transfer of built kernels between machines: from the cache into a pack, and into another cache.

A pack's digests protect from damage.  They say nothing about who made it: what is in it runs with
the rights of whoever imports it (docs/security.md).
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base import places
from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.base.heartbeat import Write, repeating
from testbed.base.whole_file import open_whole, refuse_existing
from testbed.kernel.build.cache import (
    BINARY_FILE,
    KernelBuild,
    KernelIdentity,
    build_folder,
    build_lock,
    differences,
    read_build,
    write_identity,
)
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.native import NATIVE, is_whole, program_sources
from testbed.kernel.build.pin import Pin, pins, read_pin
from testbed.kernel.build.toolchain import read_name
from wings.kernels.own.build import build_place, config_sha256, key_of
from wings.kernels.own.definition import (
    OwnKernel,
    name_problems,
    own_kernels,
    parse_definition,
    read_own,
    render_definition,
    write_own,
)
from wings.kernels.pack import (
    OWN_FOLDER,
    PROGRAMS_FOLDER,
    KernelPack,
    PackedFile,
    read_pack,
    render_pack,
)


@dataclass(frozen=True, slots=True)
class KernelImport:
    """What came of an import.

    Attributes:
        build: the kernel, in the cache.
        added: whether it was not there before.
        programs: the folder of the C programs; ``None``: they were not taken.
        foreign: the sources by which the pack's C programs are not this tree's.
    """

    build: KernelBuild
    added: bool
    programs: Path | None
    foreign: tuple[str, ...]


def export_kernel(
    build: KernelBuild, native: Path, file: Path, *, replace: bool, own: OwnKernel | None = None
) -> str:
    """Write a kernel and the C programs in ``native`` to ``file``, and return its SHA-256.

    ``own`` is what the kernel is made of where it is the user's own.

    Raises:
        ConfigurationError: the file is there and is not to be replaced.
        StorageError: it cannot be written, or what belongs into it cannot be read.
    """
    refuse_existing(file, replace=replace)
    if not is_whole(native):
        raise StorageError(f"{native} is damaged; start again: ./run.sh builds it anew")
    try:
        packed = render_pack(_gather(build, native, own))
    except OSError as error:
        raise StorageError(
            f"cannot read {error.filename}: {error.strerror}; start again: ./run.sh builds it anew"
        ) from None
    with open_whole(file, "choose another place") as stream:
        stream.write(packed)
    return hashlib.sha256(packed).hexdigest()


def import_kernel(file: Path, cache: Path, home: Path, progress: Write) -> KernelImport:
    """Put the kernel and the C programs that are packed in ``file`` into ``cache``.

    A kernel of somebody's own becomes one of the data folder ``home``.  All of the pack is checked
    before any of it is written, and what is written appears whole.

    Raises:
        ConfigurationError: it is no whole pack, its kernel is not of this tree's pins, or one of
            that name is there and is another.
        MissingError: its kernel does not run on this machine.
        StorageError: the cache or the data folder cannot be written.
    """
    pack = read_pack(file)
    own = _read_own(file, pack, home)
    pin = _read_pin(file, pack.identity) if own is None else own.pin
    _check_machine(file, pack)
    foreign = tuple(_foreign_sources(pack.sources, program_sources()))
    try:
        with (
            places.using_cache(cache),
            repeating(progress) as report,
            build_lock(pin, cache, report),
        ):
            folder = build_folder(pin, cache) if own is None else build_place(own, cache)
            build = _find_same(file, pack.identity, pin, folder)
            programs = None if foreign else _put_programs(pack, pin, cache)
            if build is None:
                with _new_folder(folder, pin, cache) as scratch:
                    _write(scratch / BINARY_FILE, pack.files[BINARY_FILE])
                    write_identity(scratch, pack.identity)
            there = KernelBuild(folder / BINARY_FILE, pack.identity, pin.boot)
    except OSError as error:
        raise StorageError(
            f"cannot write to the cache {cache}: {error.strerror} ({error.filename}); free space, "
            "or set XDG_CACHE_HOME to a folder that you may write to"
        ) from None
    if own is not None and own.name not in own_kernels(home):
        write_own(own, home, replaced=False)
    return KernelImport(there, build is None, programs, foreign)


def _read_own(file: Path, pack: KernelPack, home: Path) -> OwnKernel | None:
    """Return the kernel of somebody's own that the pack holds; ``None``: it is a pinned one.

    Raises:
        ConfigurationError: its base is not this tree's, or another kernel has its name here.
    """
    prefix = f"{OWN_FOLDER}/"
    packed = {name: part.data for name, part in pack.files.items() if name.startswith(prefix)}
    if not packed:
        return None
    name = pack.identity.version
    problems = name_problems(name)
    try:
        texts = {key.removeprefix(prefix): data.decode() for key, data in packed.items()}
        own = parse_definition(name, texts, home)
    except ValueError as error:
        raise ConfigurationError(
            [*problems, f"{file}: what its kernel is made of cannot be read ({error}); nothing was "
             "imported"]
        ) from None  # fmt: skip
    identity = pack.identity
    made_of = (
        identity.config_sha256, dict(identity.patches), identity.compiler, identity.recipe,
    )  # fmt: skip
    if made_of != (config_sha256(own), own.patch_sha256, read_name(), RECIPE):
        problems.append(
            f"{file}: its kernel {name!a} is made from another {own.base} than this tree's; export "
            "it in a tree of this version"
        )
    elif not problems and name in own_kernels(home) and key_of(read_own(name, home)) != key_of(own):
        problems.append(
            f"{file}: a kernel {name!r} is there, and is another; remove it first: "
            f"./run.sh kernel remove {name}"
        )
    if problems:
        raise ConfigurationError(problems)
    return own


def _gather(build: KernelBuild, native: Path, own: OwnKernel | None) -> KernelPack:
    files = {BINARY_FILE: _read(build.binary)}
    for name, text in (render_definition(own) if own is not None else {}).items():
        files[f"{OWN_FOLDER}/{name}"] = PackedFile(0o644, text.encode())
    for program in sorted(native.iterdir()):
        files[f"{PROGRAMS_FOLDER}/{program.name}"] = _read(program)
    return KernelPack(
        identity=build.identity,
        machine=platform.machine(),
        programs=native.name,
        sources=program_sources(),
        files=files,
    )


def _read_pin(file: Path, identity: KernelIdentity) -> Pin:
    """Return the pin that the build is of, or refuse, naming what each of the two is."""
    known = pins()
    if identity.version not in known:
        raise ConfigurationError(
            [f"{file}: holds kernel {identity.version}, and this tree pins {', '.join(known)}; "
             "export the kernel in a tree of this version"]
        )  # fmt: skip
    pin = read_pin(identity.version)
    mismatches = differences(identity, pin)
    if mismatches:
        raise ConfigurationError(
            [f"{file}: holds another kernel {pin.version} than this tree's: "
             f"{'; '.join(mismatches)}; export the kernel in a tree of this version"]
        )  # fmt: skip
    return pin


def _check_machine(file: Path, pack: KernelPack) -> None:
    if pack.machine != platform.machine():
        raise MissingError(
            f"{file}: holds a kernel for {pack.machine}; this machine is {platform.machine()}"
        )


def _foreign_sources(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    return (name for name in sorted({*there, *here}) if there.get(name) != here.get(name))


def _find_same(file: Path, identity: KernelIdentity, pin: Pin, folder: Path) -> KernelBuild | None:
    """Return the build in ``folder`` of the cache if it is the pack's; ``None``: there is none.

    Raises:
        ConfigurationError: the cache has other bits of the same build.
    """
    build = read_build(folder, pin)
    if build is not None and build.identity.binary_sha256 != identity.binary_sha256:
        raise ConfigurationError(
            [f"{file}: its kernel {pin.version} is made from the same as the one in {folder} "
             f"and has other bits: SHA-256 {identity.binary_sha256[:12]} instead of "
             f"{build.identity.binary_sha256[:12]}; to use it, remove that folder first"]
        )  # fmt: skip
    return build


def _put_programs(pack: KernelPack, pin: Pin, cache: Path) -> Path:
    """Return the folder of the pack's C programs, which are put there unless they are in it."""
    folder = cache / NATIVE / pack.programs
    if not is_whole(folder):
        prefix = f"{PROGRAMS_FOLDER}/"
        with _new_folder(folder, pin, cache) as scratch:
            for name, file in pack.files.items():
                if name.startswith(prefix):
                    _write(scratch / name.removeprefix(prefix), file)
    return folder


@contextmanager
def _new_folder(folder: Path, pin: Pin, cache: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``folder`` when the block ends; one that is there goes.

    The caller holds the pin's build lock, whose next holder removes what a killed import leaves.
    """
    with TemporaryDirectory(prefix=f".{pin.version}-", dir=cache / "kernels") as name:
        scratch = Path(name) / folder.name
        scratch.mkdir()
        yield scratch
        folder.parent.mkdir(exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)


def _read(path: Path) -> PackedFile:
    return PackedFile(path.stat().st_mode & 0o777, path.read_bytes())


def _write(path: Path, file: PackedFile) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(file.data)
    path.chmod(file.mode)
