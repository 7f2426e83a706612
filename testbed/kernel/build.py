"""Built kernels: one cache folder for each pin and compiler, built when it is not there.

``python -m testbed.kernel.build 7.3 6.1`` builds (or finds) those versions.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.base.checksums import file_sha256
from testbed.base.errors import EXIT_INTERRUPTED, TestbedError
from testbed.base.heartbeat import repeating
from testbed.base.interrupt import raising
from testbed.base.places import cache
from testbed.kernel.compiler import RECIPE, check_machine, compile_kernel, read_compiler
from testbed.kernel.pin import DEFAULT_VERSION, Pin, read_pin, upstream
from testbed.kernel.source import Progress, fetch_source
from testbed.model import digest


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


def build_key(pin: Pin, compiler: str) -> str:
    """Return the SHA-256 hex of everything that decides the binary."""
    return digest(
        {
            "source": pin.tarball_sha256,
            "config": pin.config_sha256,
            "patches": pin.patch_sha256,
            "compiler": compiler,
            "recipe": RECIPE,
        }
    )


def build_folder(pin: Pin, compiler: str, cache: Path) -> Path:
    """Return where the build of ``pin`` by ``compiler`` is, or will be."""
    return cache / "kernels" / f"{pin.version}-{build_key(pin, compiler)[:12]}"


def find_kernel(pin: Pin, cache: Path, allow_revision: bool = False) -> KernelBuild | None:
    """Return the kernel of ``pin`` if it is in the cache, whole and built from the same inputs.

    With ``allow_revision`` also one from another Debian revision of the same upstream source.
    Where there is no compiler to build another with, the one that built it does not matter.
    """
    compiler = read_compiler() if shutil.which("gcc") else None
    builds = [
        build
        for folder in sorted((cache / "kernels").glob(f"{pin.version}-*/"))
        if (build := _read_build(folder, pin)) is not None
        and _fits(build.identity, pin, compiler, allow_revision)
    ]
    builds.sort(key=lambda build: build.identity.source_sha256 != pin.tarball_sha256)
    return builds[0] if builds else None


def ensure_kernel(
    pin: Pin, cache: Path, jobs: int, progress: Progress, allow_revision: bool = False
) -> KernelBuild:
    """Return the kernel of ``pin``, built with ``jobs`` compilers at once unless the cache has it.

    Raises:
        MissingError: build packages, the source, or an asked option are not to be had.
        BuildError: the build failed.
    """
    found = find_kernel(pin, cache, allow_revision)
    if found is not None:
        return found
    check_machine()
    with repeating(progress) as report, _build_lock(pin, cache, report):
        found = find_kernel(pin, cache, allow_revision)  # another run may have built it
        if found is not None:
            return found
        if damaged := _damaged(pin, cache):
            report(f"kernel {pin.version}: {damaged} is damaged; building it again")
        source = fetch_source(pin, cache, report, allow_revision)
        actual = replace(pin, package_version=source.package_version, tarball_sha256=source.sha256)
        return _build(actual, source.tarball, cache, jobs, report)


def _build(pin: Pin, tarball: Path, cache: Path, jobs: int, progress: Progress) -> KernelBuild:
    compiler = read_compiler()
    folder = build_folder(pin, compiler, cache)
    work = folder.with_name(f".{folder.name}")
    for stale in folder.parent.glob(f".{pin.version}-*"):
        shutil.rmtree(stale, ignore_errors=True)  # left by a run that was killed; the lock is ours
    work.mkdir()
    try:
        binary = compile_kernel(pin, tarball, work, jobs, progress)
        identity = KernelIdentity(
            version=pin.version,
            package=pin.package,
            package_version=pin.package_version,
            source_sha256=pin.tarball_sha256,
            config_sha256=pin.config_sha256,
            patches=pin.patch_sha256,
            compiler=compiler,
            recipe=RECIPE,
            binary_sha256=file_sha256(binary),
        )
        (work / "build.json").write_text(json.dumps(asdict(identity), indent=2) + "\n")
        shutil.rmtree(work / "source")
        shutil.rmtree(folder, ignore_errors=True)  # one that was not whole
        work.rename(folder)
    except BaseException:
        if (work / "build.log").is_file():
            (work / "build.log").replace(folder.with_name(f"{folder.name}.failed.log"))
        shutil.rmtree(work, ignore_errors=True)
        raise
    progress(f"kernel {pin.version}: ready")
    return KernelBuild(folder / binary.name, identity, pin.boot)


def _read_build(folder: Path, pin: Pin) -> KernelBuild | None:
    """Return the build in ``folder``; None when it is not there or not whole."""
    try:
        identity = KernelIdentity(**json.loads((folder / "build.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    binary = folder / "linux"
    if not binary.is_file() or file_sha256(binary) != identity.binary_sha256:
        return None
    return KernelBuild(binary, identity, pin.boot)


def _damaged(pin: Pin, cache: Path) -> Path | None:
    """Return the folder of a build of ``pin`` by this compiler that ``find_kernel`` refused."""
    folder = build_folder(pin, read_compiler(), cache)
    return folder if folder.exists() else None


def _fits(identity: KernelIdentity, pin: Pin, compiler: str | None, allow_revision: bool) -> bool:
    built = (identity.config_sha256, identity.patches, identity.recipe)
    if built != (pin.config_sha256, pin.patch_sha256, RECIPE):
        return False
    if compiler is not None and identity.compiler != compiler:
        return False
    return identity.source_sha256 == pin.tarball_sha256 or (
        allow_revision and upstream(identity.package_version) == upstream(pin.package_version)
    )


@contextmanager
def _build_lock(pin: Pin, cache: Path, progress: Progress) -> Iterator[None]:
    folder = cache / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{pin.version}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"kernel {pin.version}: waiting for another run that builds it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str] | None = None) -> int:
    """Build or find the named versions and print where each one is."""
    parser = argparse.ArgumentParser(prog="python -m testbed.kernel.build", description=__doc__)
    parser.add_argument("versions", nargs="*", default=[DEFAULT_VERSION], metavar="VERSION")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--allow-kernel-revision", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        with raising():
            for version in asked.versions:
                revision = asked.allow_kernel_revision
                build = ensure_kernel(
                    read_pin(version), cache(), asked.jobs, _print_error, revision
                )
                print(build.binary)
    except TestbedError as error:
        _print_error(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _print_error(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
