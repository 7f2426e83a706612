"""Cache of built kernels: a folder for all that decides a kernel, built when it is not there.

``python -m testbed.kernel.build.cache 7.3 6.1`` builds (or finds) those versions.  Standard library
only, and so is all that it imports.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.debian import list_places, newer_place
from testbed.base.errors import EXIT_MISSING, EXIT_OK
from testbed.base.exits import exit_code_of
from testbed.base.heartbeat import repeating
from testbed.base.locks import locked
from testbed.base.places import cache
from testbed.kernel.build.compiler import RECIPE
from testbed.kernel.build.objects import build_in, is_kept
from testbed.kernel.build.pin import DEFAULT_VERSION, Pin, read_pin
from testbed.kernel.build.source import DebianSource, fetch_source, recipe_of
from testbed.kernel.build.toolchain import Progress, ensure_toolchain, read_name
from testbed.model import digest

IDENTITY_FILE = "build.json"
BINARY_FILE = "linux"
LOG_FILE = "build.log"
OBJECTS = "objects"
"""The folder of object trees, one for each base (``testbed.kernel.build.objects``)."""


@dataclass(frozen=True, slots=True)
class KernelIdentity:
    """Inputs of a kernel build, and its output; hashes are SHA-256 hex."""

    version: str
    package: str
    package_version: str
    source_sha256: str
    config_sha256: str
    patches: dict[str, str]
    compiler: str
    recipe: str
    binary_sha256: str


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """A kernel that is ready to boot, what it was built from, and the boot words it wants."""

    binary: Path
    identity: KernelIdentity
    boot: tuple[str, ...]


def build_key(pin: Pin) -> str:
    """Return the SHA-256 hex of everything that decides the binary."""
    return digest(
        {"source": pin.tarball_sha256, "config": pin.config_sha256, "patches": pin.patch_sha256,
         "compiler": read_name(), "recipe": RECIPE}
    )  # fmt: skip


def build_folder(pin: Pin, cache: Path) -> Path:
    """Return where the build of ``pin`` is, or will be."""
    return cache / "kernels" / f"{pin.version}-{build_key(pin)[:12]}"


def find_kernel(pin: Pin, cache: Path) -> KernelBuild | None:
    """Return the kernel of ``pin`` if it is in the cache, whole and built from the same inputs.

    Where its source or the toolchain was gone, that of newer ones; not if FIRSTFLIGHT_LOCKED is
    set.
    """
    place = build_folder(pin, cache)
    for folder in list_places(place):
        build = read_build(folder, pin)
        if build and (folder != place or not differences(build.identity, pin)):
            return build
    return None


def differences(identity: KernelIdentity, pin: Pin) -> list[str]:
    """Return one phrase for each input of a build that is not the pin's, or not this tree's."""
    mismatches = []
    if identity.source_sha256 != pin.tarball_sha256:
        mismatches.append(
            f"source {identity.package} {identity.package_version} ({identity.source_sha256[:12]}) "
            f"instead of {pin.package} {pin.package_version} ({pin.tarball_sha256[:12]})"
        )
    wanted = {
        "configuration": pin.config_sha256[:12],
        **{name: sha256[:12] for name, sha256 in pin.patch_sha256.items()},
        "compiler": read_name(),
        "build recipe": RECIPE,
    }
    had = {"configuration": identity.config_sha256[:12],
           **{name: sha256[:12] for name, sha256 in identity.patches.items()},
           "compiler": identity.compiler, "build recipe": identity.recipe}  # fmt: skip
    for name in {**wanted, **had}:
        if had.get(name) != wanted.get(name):
            there, here = (texts.get(name, "none") for texts in (had, wanted))
            mismatches.append(f"{name} {there} instead of {here}")
    return mismatches


def ensure_kernel(
    pin: Pin, cache: Path, jobs: int, progress: Progress, keep_objects: bool = False,
) -> KernelBuild:  # fmt: skip
    """Return the kernel of ``pin``, built with ``jobs`` compilers at once unless the cache has it.

    With ``keep_objects`` what is compiled for it is kept, so that kernels of the user's own, which
    differ in a few files, are built in seconds; it is some 2 GB.

    Raises:
        MissingError: the toolchain, the source, or an asked option are not to be had.
        BuildError: the build failed.
    """
    build = find_kernel(pin, cache)
    if build is not None:
        return build
    with repeating(progress) as report, build_lock(pin, cache, report):
        build = find_kernel(pin, cache)  # another run may have built it
        if build is not None:
            return build
        if (folder := build_folder(pin, cache)).exists():
            report(f"kernel {pin.version}: {folder} is damaged; building it again")
        toolchain = ensure_toolchain(cache, report)
        source = fetch_source(pin, cache, toolchain, report)
        return _build(pin, source, cache, jobs, report, keep_objects)


def objects_folder(pin: Pin, source: DebianSource, cache: Path) -> Path:
    """Return where the object tree of a pinned source is, or would be."""
    return cache / "kernels" / OBJECTS / f"{pin.version}-{source.id[:12]}"


def _build(
    pin: Pin, source: DebianSource, cache: Path, jobs: int, progress: Progress, keep: bool
) -> KernelBuild:
    as_locked = source.sha256 == pin.tarball_sha256 and source.toolchain.name == read_name()
    folder = build_folder(pin, cache) if as_locked else newer_place(build_folder(pin, cache))
    pin = source.take_place(pin)
    kept = objects_folder(pin, source, cache)
    keep = keep or is_kept(kept)
    recipe = recipe_of(pin, replace(source, whole=keep))
    with new_build(folder) as work:
        build_in(
            kept if keep else work / OBJECTS, recipe, toolchain=source.toolchain,
            binary=work / BINARY_FILE, log=work / LOG_FILE, jobs=jobs, progress=progress,
        )  # fmt: skip
        identity = identify(pin, source.toolchain.name, file_sha256(work / BINARY_FILE))
        write_identity(work, identity)
        shutil.rmtree(work / OBJECTS, ignore_errors=True)
    progress(f"kernel {pin.version}: ready")
    return KernelBuild(folder / BINARY_FILE, identity, pin.boot)


@contextmanager
def new_build(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``folder`` when the block ends; one that is there goes.

    After an error only the build's log is left, beside ``folder``.
    """
    work = folder.with_name(f".{folder.name}")
    shutil.rmtree(work, ignore_errors=True)  # left by a run that was killed
    work.mkdir(parents=True)
    try:
        yield work
        shutil.rmtree(folder, ignore_errors=True)  # one that was not whole
        work.rename(folder)
    except BaseException:
        if (work / LOG_FILE).is_file():
            (work / LOG_FILE).replace(folder.with_name(f"{folder.name}.failed.log"))
        shutil.rmtree(work, ignore_errors=True)
        raise


def identify(pin: Pin, compiler: str, binary_sha256: str) -> KernelIdentity:
    """Return what a build of ``pin`` by ``compiler`` says of itself."""
    return KernelIdentity(
        version=pin.version, package=pin.package, package_version=pin.package_version,
        source_sha256=pin.tarball_sha256, config_sha256=pin.config_sha256, patches=pin.patch_sha256,
        compiler=compiler, recipe=RECIPE, binary_sha256=binary_sha256,
    )  # fmt: skip


def write_identity(folder: Path, identity: KernelIdentity) -> None:
    """Write what the build in ``folder`` is, which ``find_kernel`` reads."""
    (folder / IDENTITY_FILE).write_text(json.dumps(asdict(identity), indent=2) + "\n")


def read_build(folder: Path, pin: Pin) -> KernelBuild | None:
    """Return the build in ``folder``; ``None`` when it is not there or not whole."""
    identity = read_whole(folder)
    return KernelBuild(folder / BINARY_FILE, identity, pin.boot) if identity else None


def read_whole(folder: Path) -> KernelIdentity | None:
    """Return what a build says of itself; ``None``: it is not there or not whole."""
    identity, binary = read_identity(folder), folder / BINARY_FILE
    if identity is None or not binary.is_file() or file_sha256(binary) != identity.binary_sha256:
        return None
    return identity if isinstance(identity.patches, dict) else None


def read_identity(folder: Path) -> KernelIdentity | None:
    """Return what the build in ``folder`` says of itself; ``None`` where there is none."""
    try:
        return KernelIdentity(**json.loads((folder / IDENTITY_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def build_lock(pin: Pin, cache: Path, progress: Progress) -> Iterator[None]:
    """Keep others from building or importing a kernel of the pin's version during the block."""
    folder = cache / "kernels"
    waiting = f"kernel {pin.version}: waiting for another run that builds it"
    with locked(folder / f".{pin.version}.lock", waiting, progress):
        for stale in folder.glob(f".{pin.version}-*"):
            progress(f"kernel {pin.version}: removing what a run that was killed has left")
            shutil.rmtree(stale, ignore_errors=True)
        yield


def main(arguments: list[str] | None = None) -> int:
    """Build or find the named versions and print where each one is; 3 where one is not found."""
    parser = argparse.ArgumentParser(
        prog="python -m testbed.kernel.build.cache", description=__doc__
    )
    parser.add_argument("versions", nargs="*", default=[DEFAULT_VERSION], metavar="VERSION")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--find", action="store_true", help="build none")
    parser.add_argument("--keep-objects", action="store_true", help="for kernels of your own")
    options = parser.parse_args(arguments)

    def work() -> int:
        for version in options.versions:
            pin = read_pin(version)
            if options.find:
                build = find_kernel(pin, cache())
            else:
                build = ensure_kernel(
                    pin, cache(), options.jobs, _print_error, options.keep_objects
                )
            if build is None:
                _print_error(f"kernel {version} is not in the cache")
                return EXIT_MISSING
            print(build.binary)
        return EXIT_OK

    return exit_code_of(work, _print_error)


def _print_error(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
