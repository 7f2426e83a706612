"""Kernel sources from Debian's archives, kept: a pin can be rebuilt after Debian has moved on.

Standard library only: a kernel is built before there is a Python environment.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import IO

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.debian import only_locked
from testbed.base.errors import MissingError, StorageError, caching
from testbed.kernel.build.objects import KernelRecipe, check_patches
from testbed.kernel.build.patches import PatchError, read_patch
from testbed.kernel.build.pin import Pin, pins
from testbed.kernel.build.toolchain import Progress, Toolchain
from testbed.root.download import SNAPSHOT_VARIABLE, GoneError, download, list_sources, package_file
from testbed.root.index import is_newer
from testbed.root.lock import LockedPackage
from testbed.root.package import open_content
from testbed.root.release import read_index

_UNPACK_S = 600.0
# What a kernel for User-Mode Linux has no use for, in tar(1)'s patterns; seven of ten files.
_FOREIGN = ("*/Documentation/*/*", "*/arch/[!ux]*/*.[chS]", "*.dts", "*.dtsi",
            "*/drivers/[!bcnt]*/*.[ch]", "*/drivers/net/*/*.[ch]", "*/sound/*.[ch]",
            "*/samples/*.[ch]", "*/tools/perf/*", "*/tools/testing/*")  # fmt: skip


@dataclass(frozen=True, slots=True)
class DebianSource:
    """A kernel source tarball on disk, and the exact package that it came from."""

    tarball: Path
    sha256: str
    package: str
    package_version: str
    toolchain: Toolchain
    """What unpacks it."""
    whole: bool = True
    """Whether files that only other machines need are unpacked, for patches may touch any."""

    @property
    def id(self) -> str:
        """The tarball's SHA-256."""
        return self.sha256

    def describe(self) -> str:
        """Return the package's name and version."""
        return f"{self.package} {self.package_version}"

    def take_place(self, pin: Pin) -> Pin:
        """Return ``pin`` with this source instead of its own."""
        return replace(pin, package_version=self.package_version, tarball_sha256=self.sha256)

    def unpack(self, tree: Path) -> None:
        """Write the files into the empty folder ``tree``."""
        without = () if self.whole else _FOREIGN
        unpack(self.tarball, tree, self.toolchain, without=without)

    def changed_since(self, _before: str) -> None:
        """Say that any file may differ from those of another source."""

    def extract(self, names: Collection[str], folder: Path) -> None:
        """Write those of the files ``names`` that it has into ``folder``."""
        unpack(self.tarball, folder, self.toolchain, names)


def fetch_source(pin: Pin, cache: Path, toolchain: Toolchain, progress: Progress) -> DebianSource:
    """Return the source of ``pin``: from ``cache`` when it is there, else from Debian's archives.

    Where no source has it any more, the newest that the suite offers and all patches of ``pin`` fit
    takes its place; not if FIRSTFLIGHT_LOCKED is set.  The caller holds the pin's build lock.

    Raises:
        MissingError: the source is no longer to be had.
        StorageError: it cannot be written, or the package is damaged.
    """
    kept = kept_tarball(pin, cache)
    if kept.is_file() and file_sha256(kept) == pin.tarball_sha256:
        return DebianSource(kept, pin.tarball_sha256, pin.package, pin.package_version, toolchain)
    with caching(f"keep kernel {pin.version}'s source"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _fetch(pin, pin.file, cache, toolchain, progress)
        except GoneError as gone:
            if only_locked():
                raise MissingError(_describe_gone(pin, kept, str(gone))) from None
            return _fetch_newer(pin, cache, toolchain, progress, gone)


def _fetch(
    pin: Pin, package: LockedPackage, cache: Path, toolchain: Toolchain, progress: Progress
) -> DebianSource:
    """Return the source in ``package``, downloaded and kept.

    Raises:
        GoneError, MissingError: it cannot be had.
        StorageError: it is damaged, or not what is pinned.
    """
    folder = cache / "kernels" / "sources" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{pin.tarball}.*"):
        stale.unlink()  # left by a run that was killed
    download((package,), folder, list_sources(pin.taken), progress)
    file = package_file(folder, package)
    with NamedTemporaryFile(dir=folder, prefix=f"{pin.tarball}.", delete=False) as scratch:
        tarball = Path(scratch.name)
        try:
            _copy_tarball(file, pin.tarball, scratch)
        except BaseException:
            tarball.unlink()
            raise
    sha256 = file_sha256(tarball)
    file.unlink()
    if package == pin.file and sha256 != pin.tarball_sha256:
        tarball.unlink()
        raise StorageError(
            f"{pin.tarball} of {package.describe()} has SHA-256 {sha256}, but kernel {pin.version} "
            f"is pinned to {pin.tarball_sha256}; it is not used: correct one of them in pin.toml"
        )
    place = kept_tarball(replace(pin, tarball_sha256=sha256), cache)
    place.parent.mkdir(parents=True, exist_ok=True)
    tarball.chmod(0o644)
    tarball.replace(place)
    return DebianSource(place, sha256, package.name, package.version, toolchain)


def _fetch_newer(
    pin: Pin, cache: Path, toolchain: Toolchain, progress: Progress, gone: GoneError
) -> DebianSource:
    """Return the newest source offered that all patches of ``pin`` fit.

    Raises:
        MissingError: there is none.
    """
    progress(f"kernel {pin.version}: {pin.file.describe()} is gone; asking Debian for the newest")
    said = [str(gone)]
    try:
        offered = read_index({pin.file.archive: (pin.suite,)}).offered(pin.package)
        for package in offered:
            if not is_newer(package.version, pin.package_version):
                continue
            source = _fetch(pin, package, cache, toolchain, progress)
            try:
                check_patches(recipe_of(pin, source), toolchain)
            except PatchError as error:
                said.append(f"{package.describe()} is offered, and not used: {error}")
                progress(said[-1])
                shutil.rmtree(source.tarball.parent)
                continue
            return source
        said.append(f"{pin.suite} offers {', '.join(p.version for p in offered) or 'none'}")
    except MissingError as error:
        said.append(str(error))
    raise MissingError(_describe_gone(pin, kept_tarball(pin, cache), "\n".join(said)))


def recipe_of(pin: Pin, source: DebianSource) -> KernelRecipe:
    """Return what the kernel of ``pin`` is compiled from."""
    return KernelRecipe(pin.version, source, tuple(map(read_patch, pin.patches)), pin.config)


def _copy_tarball(package: Path, name: str, target: IO[bytes]) -> None:
    with open_content(package) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content and PurePosixPath(member.name).name == name:
                shutil.copyfileobj(content, target, 1 << 20)
                return
    raise StorageError(f"{package} holds no {name}; remove it, and try again")


def _describe_gone(pin: Pin, kept: Path, said: str) -> str:
    ways = [f"choose the other kernel by --kernel-version {v}" for v in pins() if v != pin.version]
    ways.append(f"put {pin.tarball} with SHA-256 {pin.tarball_sha256} at {kept}")
    return (
        f"kernel {pin.version}: {pin.file.describe()} is no longer to be had:\n{said}\n"
        f"Set {SNAPSHOT_VARIABLE} to an archive of old versions, {', or '.join(ways)}"
    )


def unpack(
    tarball: Path, folder: Path, toolchain: Toolchain, names: Collection[str] | None = None,
    without: Collection[str] = (),
) -> None:  # fmt: skip
    """Unpack a kernel's tarball, or those of the files ``names`` that it has, into ``folder``.

    ``without`` are patterns of what is left out.

    Raises:
        CommandError: it cannot be unpacked.
    """
    # What takes long ends with this process, however that ends.
    argv = [toolchain.program("setpriv"), "--pdeathsig", "TERM", toolchain.program("tar"),
            "-xJf", str(tarball), "-C", str(folder), "--strip-components=1",
            *(f"--exclude={pattern}" for pattern in without)]  # fmt: skip
    if names is None:
        proc.run(argv, env=toolchain.environment, timeout_s=_UNPACK_S)
        return
    patterns = [f"*/{name}" for name in sorted(names)]
    argv += ["--wildcards", "--no-wildcards-match-slash", "--", *patterns]
    done = proc.run(argv, env=toolchain.environment, timeout_s=_UNPACK_S, check=False)
    absent = "Not found in archive" in done.stderr  # some of them are not in this source
    if done.returncode != 0 and not absent:
        raise proc.CommandError(f"{tarball} cannot be unpacked: {done.stderr.strip()[-500:]}")


def kept_tarball(pin: Pin, cache: Path) -> Path:
    """Return where the pinned tarball is kept below ``cache``."""
    return cache / "kernels" / "sources" / pin.tarball_sha256[:12] / pin.tarball
