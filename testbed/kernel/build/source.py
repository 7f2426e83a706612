"""Kernel sources from Debian, fetched without the machine's apt configuration.

The tarball is kept, so that a pin can be rebuilt after Debian has moved on.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.debian import private_apt
from testbed.base.errors import MissingError
from testbed.kernel.build.pin import Pin, pins, upstream
from testbed.kernel.build.toolchain import Progress, Toolchain

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

    def unpack(self, tree: Path) -> None:
        """Write the files into the empty folder ``tree``."""
        without = () if self.whole else _FOREIGN
        unpack(self.tarball, tree, self.toolchain, without=without)

    def changed_since(self, _before: str) -> None:
        """Say that any file may differ from those of another source."""

    def extract(self, names: Collection[str], folder: Path) -> None:
        """Write those of the files ``names`` that it has into ``folder``."""
        unpack(self.tarball, folder, self.toolchain, names)


def fetch_source(
    pin: Pin,
    cache: Path,
    toolchain: Toolchain,
    progress: Progress,
    allow_revision: bool = False,
) -> DebianSource:
    """Return the source of ``pin``: from ``cache`` when it is there, else from a Debian mirror.

    ``allow_revision`` accepts another Debian revision of the same upstream version.  The caller
    holds the pin's build lock.

    Raises:
        MissingError: the source is no longer to be had, or a tool or the keyring is missing.
        CommandError: apt or dpkg-deb failed.
    """
    kept = kept_tarball(pin, cache)
    if kept.is_file() and file_sha256(kept) == pin.tarball_sha256:
        return DebianSource(kept, pin.tarball_sha256, pin.package, pin.package_version, toolchain)
    kept.parent.mkdir(parents=True, exist_ok=True)
    for stale in kept.parent.glob(".fetch-*"):
        shutil.rmtree(stale, ignore_errors=True)  # left by a run that was killed
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetch-") as scratch:
        progress(f"asking Debian for {pin.package}")
        apt = private_apt(pin.suite, Path(scratch))
        version = choose_version(pin, apt.offered(pin.package), allow_revision, kept)
        progress(f"downloading {pin.package} {version}")
        package = apt.download(pin.package, version)
        return _keep(pin, version, _unpack_tarball(pin, package), cache, toolchain)


def unpack(
    tarball: Path,
    folder: Path,
    toolchain: Toolchain,
    names: Collection[str] | None = None,
    without: Collection[str] = (),
) -> None:
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


def choose_version(pin: Pin, offered: Iterable[str], allow_revision: bool, kept: Path) -> str:
    """Return which of the package versions ``offered`` (newest first) satisfies ``pin``.

    ``kept`` is where a copy of the tarball would be used from, for the message.

    Raises:
        MissingError: none does; the message says what is offered and the ways on.
    """
    versions = list(offered)
    if pin.package_version in versions:
        return pin.package_version
    relatives = [v for v in versions if upstream(v) == upstream(pin.package_version)]
    if relatives and allow_revision:
        return relatives[0]
    ways = [f"choose the other kernel by --kernel-version {v}" for v in pins() if v != pin.version]
    if relatives:
        ways.insert(0, f"accept {relatives[0]} of the same upstream by --allow-kernel-revision")
    ways.append(f"put {pin.tarball} with SHA-256 {pin.tarball_sha256} at {kept}")
    raise MissingError(
        f"kernel {pin.version}: {pin.package} {pin.package_version} is no longer in Debian's "
        f"suite {pin.suite} (offered: {', '.join(versions) or 'nothing'}); {', or '.join(ways)}"
    )


def _unpack_tarball(pin: Pin, package: Path) -> Path:
    tree = package.parent / "tree"
    proc.run(["dpkg-deb", "-x", str(package), str(tree)], timeout_s=_UNPACK_S)
    tarball = tree / "usr" / "src" / pin.tarball
    if not tarball.is_file():
        raise MissingError(f"{package.name} holds no {pin.tarball}")
    return tarball


def _keep(pin: Pin, version: str, tarball: Path, cache: Path, toolchain: Toolchain) -> DebianSource:
    sha256 = file_sha256(tarball)
    if version == pin.package_version and sha256 != pin.tarball_sha256:
        raise MissingError(
            f"{pin.tarball} of {pin.package} {version} has SHA-256 {sha256}, "
            f"but kernel {pin.version} is pinned to {pin.tarball_sha256}; it is not used"
        )
    place = cache / "kernels" / "sources" / sha256[:12] / pin.tarball
    place.parent.mkdir(parents=True, exist_ok=True)
    tarball.replace(place)
    return DebianSource(place, sha256, pin.package, version, toolchain)
