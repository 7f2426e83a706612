"""Builds of own kernels: in the cache, under a key of all that decides the binary.

Equal kernels are built once, whatever their names.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from testbed.base import log
from testbed.base.checksums import file_sha256
from testbed.base.debian import list_places, newer_place
from testbed.base.errors import ConfigurationError, StorageError
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.base.places import emptying_cache
from testbed.kernel.build.cache import (
    BINARY_FILE,
    LOG_FILE,
    OBJECTS,
    KernelBuild,
    KernelIdentity,
    build_lock,
    new_build,
    objects_folder,
    read_build,
    write_identity,
)
from testbed.kernel.build.compiled import find_misses, read_misses, write_misses
from testbed.kernel.build.compiler import RECIPE, BuildError, parse_config
from testbed.kernel.build.objects import Source, build_in, write_patched
from testbed.kernel.build.patches import Patch
from testbed.kernel.build.pin import Pin
from testbed.kernel.build.source import DebianSource, fetch_source
from testbed.kernel.build.toolchain import Progress, Toolchain, ensure_toolchain, read_name
from wings.kernels.own.definition import OwnKernel, own_kernels, read_own, recipe_for

_log = log.logger(__name__)

OWN = "own"
"""The folder of builds of own kernels, beside those of the pinned ones."""
_FRAGMENT_FILE = "kernel.config"


def key_of(own: OwnKernel) -> str:
    """Return the SHA-256 hex of all that decides the binary."""
    document = {"source": own.git.tree if own.git else own.pin.tarball_sha256,
                "config": config_sha256(own), "patches": own.patch_sha256, "compiler": read_name(),
                "recipe": RECIPE}  # fmt: skip
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def dropped_options(own: OwnKernel) -> list[str]:
    """Return a sentence for each option that is off, and that every kernel of ours has."""
    usual = parse_config(own.pin.config.read_text())
    return [f"{name} is off, and all kernels of the testbed have it: a load that needs it fails"
            for name, value in own.options if value == "n"
            and usual.get(name, "n") != "n"]  # fmt: skip


def config_sha256(own: OwnKernel) -> str:
    """Return the SHA-256 hex of the configuration that it asks for."""
    return hashlib.sha256(own.render_config().encode()).hexdigest()


def build_place(own: OwnKernel, cache: Path) -> Path:
    """Return the folder where the build of ``own`` is, or will be."""
    return cache / "kernels" / OWN / key_of(own)[:24]


def find_own(own: OwnKernel, cache: Path) -> KernelBuild | None:
    """Return the build of ``own`` if the cache has it, whole.

    Where its source or the toolchain was gone, that of newer ones; not if FIRSTFLIGHT_LOCKED is
    set.
    """
    found = (read_build(place, own.pin) for place in list_places(build_place(own, cache)))
    build = next(filter(None, found), None)
    return build and replace(build, identity=replace(build.identity, version=own.name))


def ensure_own(own: OwnKernel, cache: Path, jobs: int, progress: Progress,
               check: Callable[[KernelBuild], str | None]) -> KernelBuild:  # fmt: skip
    """Return the build of ``own``, made now unless the cache has it; warn of what it has not.

    ``check`` looks at a new build, such as by booting it, and returns what is wrong with it; such a
    build is not kept.

    Raises:
        PatchError: a patch does not apply.
        BuildError: it does not compile, or ``check`` has refused it.
        MissingError: the toolchain, the source, or an asked option are not to be had.
    """
    build = find_own(own, cache) or _build(own, cache, jobs, progress, check)
    if misses := read_misses(build.binary.parent):
        _log.warning("kernel %s has not all of what is changed: %s", own.name, "; ".join(misses))
    return build


def _build(own: OwnKernel, cache: Path, jobs: int, progress: Progress,
           check: Callable[[KernelBuild], str | None]) -> KernelBuild:  # fmt: skip
    """Return the build of ``own``, which another run may have made by now."""
    folder = build_place(own, cache)
    lock = folder.with_name(f".{folder.name}.lock")
    waiting = f"kernel {own.name}: waiting for another run that builds it"
    with repeating(progress) as report, locked(lock, waiting, report):
        if cached := find_own(own, cache):  # another run may have built it
            return cached
        toolchain = ensure_toolchain(cache, report)
        source, objects = open_source(own, cache, toolchain, report)
        pin = source.take_place(own.pin) if isinstance(source, DebianSource) else own.pin
        if pin != own.pin or toolchain.name != read_name():
            folder = newer_place(folder)
        with new_build(folder) as work:
            (work / _FRAGMENT_FILE).write_text(own.render_config())
            recipe = recipe_for(own, source, work / _FRAGMENT_FILE)
            build_in(objects, recipe, toolchain=toolchain, binary=work / BINARY_FILE,
                     log=work / LOG_FILE, jobs=jobs, progress=report,
                     look=partial(_note_misses, work, own, toolchain))  # fmt: skip
            identity = _identify(own, pin, toolchain.name, file_sha256(work / BINARY_FILE))
            write_identity(work, identity)
            report(f"kernel {own.name}: booting it once")
            if problem := check(KernelBuild(work / BINARY_FILE, identity, own.pin.boot)):
                raise BuildError(f"kernel {own.name} {problem}")
    progress(f"kernel {own.name}: ready")
    return KernelBuild(folder / BINARY_FILE, identity, own.pin.boot)


def write_source(
    own: OwnKernel, names: Collection[str], folder: Path, cache: Path, progress: Progress
) -> None:
    """Write the files ``names`` of the source of ``own``, patched, into the empty ``folder``.

    What it does not have is left out.

    Raises:
        PatchError: a patch does not apply.
        MissingError: the source or the toolchain is not to be had.
    """
    toolchain = ensure_toolchain(cache, progress)
    source, _ = open_source(own, cache, toolchain, progress)
    write_patched(recipe_for(own, source, folder), names, folder, toolchain)


def _note_misses(folder: Path, own: OwnKernel, toolchain: Toolchain, tree: Path) -> None:
    """Keep in ``folder`` what the kernel in ``tree`` has not of the user's changes."""
    patches = own.patches
    if own.git is not None and (change := own.git.read_change()):
        patches = (Patch("git", own.git.revision, change), *patches)
    write_misses(folder, [*dropped_options(own), *find_misses(tree, patches, toolchain)])


def remove_own(name: str, home: Path, cache: Path) -> None:
    """Remove a kernel's definition, and what was built of it unless another name has the same.

    What was built stays while any run uses the cache: its kernel may be this one.

    Raises:
        ConfigurationError: there is none of that name.
        StorageError: it cannot be removed.
    """
    if name not in own_kernels(home):
        read_own(name, home)  # says which there are
    folder = home / "kernels" / name
    try:
        own = read_own(name, home)
    except ConfigurationError:
        own = None
    try:
        shutil.rmtree(folder)
        if own is not None:
            others = (read_own(other, home) for other in own_kernels(home))
            keys = {key_of(other) for other in others}
            if key_of(own) not in keys:
                _remove_builds(own, cache)
    except OSError as error:
        raise StorageError(f"cannot remove {folder}: {error.strerror}") from None


def _remove_builds(own: OwnKernel, cache: Path) -> None:
    with suppress(StorageError), emptying_cache(cache):
        place = build_place(own, cache)
        for folder in (place, newer_place(place)):
            shutil.rmtree(folder, ignore_errors=True)


def open_source(
    own: OwnKernel, cache: Path, toolchain: Toolchain, progress: Progress
) -> tuple[Source, Path]:
    """Return the source of ``own``, fetched if need be, and the folder of its object tree.

    A kernel that is compiled otherwise as a whole has another.
    """
    source: Source
    if own.git is not None:
        source = own.git
        objects = cache / "kernels" / OBJECTS / f"git-{own.git.objects.name}"
    else:
        with build_lock(own.pin, cache, progress):
            source = pinned = fetch_source(own.pin, cache, toolchain, progress)
        objects = objects_folder(own.pin, pinned, cache)
    return source, objects.with_name(f"{objects.name}-{own.apart}") if own.apart else objects


def _identify(own: OwnKernel, pin: Pin, compiler: str, binary_sha256: str) -> KernelIdentity:
    git = own.git
    return KernelIdentity(
        version=own.name, package="git" if git else pin.package,
        package_version=f"{git.version} {git.commit[:12]}" if git else pin.package_version,
        source_sha256=git.tree if git else pin.tarball_sha256, config_sha256=config_sha256(own),
        patches=own.patch_sha256, compiler=compiler, recipe=RECIPE, binary_sha256=binary_sha256
    )  # fmt: skip
