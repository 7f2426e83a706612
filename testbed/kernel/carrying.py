"""Transfer of built kernels between machines: from the cache into a pack, and into another cache.

A pack's digests protect from damage.  They say nothing about who made it: what is in it runs with
the rights of whoever imports it (docs/security.md).
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.base import places
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.base.heartbeat import Write, repeating
from testbed.base.whole_file import open_whole, refuse_existing
from testbed.kernel.build.cache import (
    BINARY_FILE,
    IMPORTED,
    KernelBuild,
    KernelIdentity,
    build_folder,
    build_lock,
    differences,
    find_kernel,
    read_build,
    write_identity,
)
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.pack import (
    OWN_FOLDER,
    PROGRAMS_FOLDER,
    KernelPack,
    PackedFile,
    oldest_glibc,
    read_pack,
    render_pack,
)
from testbed.kernel.build.pin import Pin, pins, read_pin
from testbed.kernel.own.build import (
    build_place,
    config_sha256,
    find_own,
    imported_place,
    key_of,
)
from testbed.kernel.own.definition import (
    OwnKernel,
    name_problems,
    own_kernels,
    parse_definition,
    read_own,
    render_definition,
    write_own,
)

_CONTENTS = Path(".contents")  # what bootstrap/parts.sh writes down of a part
_LISTED = (_CONTENTS / "sha256", _CONTENTS / "modes")


@dataclass(frozen=True, slots=True)
class KernelImport:
    """What came of an import.

    Attributes:
        build: the kernel, in the cache.
        added: whether it was not there before.
        used: the kernel that runs use from now on.
        programs: the folder of the C programs; ``None``: they were not taken.
        foreign: the sources by which the pack's C programs are not this tree's.
    """

    build: KernelBuild
    added: bool
    used: KernelBuild
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
            there_or_imported = _places(pack, pin, own, cache)
            build = _find_same(file, pack.identity, pin, there_or_imported)
            programs = None if foreign else _put_programs(pack, pin, cache)
            folder = there_or_imported[-1]
            if build is None:
                with _new_folder(folder, pin, cache) as scratch:
                    _write(scratch / BINARY_FILE, pack.files[BINARY_FILE])
                    write_identity(scratch, pack.identity)
            there = KernelBuild(folder / BINARY_FILE, pack.identity, pin.boot)
            used = (find_kernel(pin, cache) if own is None else find_own(own, cache)) or there
    except OSError as error:
        raise StorageError(
            f"cannot write to the cache {cache}: {error.strerror} ({error.filename}); free space, "
            "or set XDG_CACHE_HOME to a folder that you may write to"
        ) from None
    if own is not None and own.name not in own_kernels(home):
        write_own(own, home, replaced=False)
    return KernelImport(build or there, build is None, used, programs, foreign)


def _places(pack: KernelPack, pin: Pin, own: OwnKernel | None, cache: Path) -> tuple[Path, Path]:
    """Return where the build would be if it were made here, and where an imported one goes."""
    if own is not None:
        return build_place(own, pack.identity.compiler, cache), imported_place(own, cache)
    made = build_folder(pin, pack.identity.compiler, cache)
    return made, made.with_name(f"{made.name}-{IMPORTED}")


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
    made_of = (pack.identity.config_sha256, dict(pack.identity.patches), pack.identity.recipe)
    if made_of != (config_sha256(own), own.patch_sha256, RECIPE):
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


def program_sources() -> dict[str, str]:
    """Return the SHA-256 of each file that the C programs are made from, by its path in the tree.

    The same files as in their key (``bootstrap/main.sh``).
    """
    native = places.ROOT / "testbed" / "native"
    files = [*native.glob("*.[ch]"), places.ROOT / "bootstrap" / "build-native.sh"]
    return {str(path.relative_to(places.ROOT)): file_sha256(path) for path in sorted(files)}


def _gather(build: KernelBuild, native: Path, own: OwnKernel | None) -> KernelPack:
    files = {BINARY_FILE: _read(build.binary)}
    for name, text in (render_definition(own) if own is not None else {}).items():
        files[f"{OWN_FOLDER}/{name}"] = PackedFile(0o644, text.encode())
    for name in (*map(str, _LISTED), *_listed_programs(native)):
        files[f"{PROGRAMS_FOLDER}/{name}"] = _read(native / name)
    return KernelPack(
        identity=build.identity,
        machine=platform.machine(),
        glibc=oldest_glibc(files),
        programs=native.name.partition("-")[0],
        sources=program_sources(),
        files=files,
    )


def _listed_programs(native: Path) -> list[str]:
    lines = (native / _LISTED[0]).read_text("utf-8").splitlines()
    return [line.partition("  ./")[2] for line in lines]


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
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    if name != "glibc" or _numbers(version) < _numbers(pack.glibc):
        raise MissingError(
            f"{file}: its kernel needs the C library glibc {pack.glibc}; this machine has "
            f"{name or 'another'} {version}; build the kernel here: ./run.sh does"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(word) for word in version.split("."))


def _foreign_sources(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    return (name for name in sorted({*there, *here}) if there.get(name) != here.get(name))


def _find_same(
    file: Path, identity: KernelIdentity, pin: Pin, folders: Iterable[Path]
) -> KernelBuild | None:
    """Return the build in the cache, made or imported, that is the pack's.

    Raises:
        ConfigurationError: the cache has other bits of the same build.
    """
    for folder in folders:
        build = read_build(folder, pin)
        if build is not None and build.identity == identity:
            return build
        if build is not None:
            raise ConfigurationError(
                [f"{file}: its kernel {pin.version} is made from the same as the one in {folder} "
                 f"and has other bits: SHA-256 {identity.binary_sha256[:12]} instead of "
                 f"{build.identity.binary_sha256[:12]}; to use it, remove that folder first"]
            )  # fmt: skip
    return None


def _put_programs(pack: KernelPack, pin: Pin, cache: Path) -> Path:
    """Return the folder of the pack's C programs, which are put there unless they are in it."""
    folder = cache / "native" / f"{pack.programs}-{IMPORTED}"
    prefix = f"{PROGRAMS_FOLDER}/"
    files = {
        name.removeprefix(prefix): file
        for name, file in pack.files.items()
        if name.startswith(prefix)
    }
    if all(_is_there(folder / name, file) for name, file in files.items()):
        return folder
    with _new_folder(folder, pin, cache) as scratch:
        for name, file in files.items():
            _write(scratch / name, file)
    return folder


def _is_there(path: Path, file: PackedFile) -> bool:
    return path.is_file() and _read(path) == file


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
