"""A recipe's package of Debian: the pinned version, or, where the recipe allows it, the newest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from testbed.base import proc
from testbed.base.debian import private_apt
from testbed.base.errors import MissingError

_UNPACK_S = 120.0


@dataclass(frozen=True, slots=True)
class Pinned:
    """A package version, where to look for it, and whether a newer one will do."""

    package: str
    version: str
    sha256: str
    suite: str
    newest: bool


def fetch_debian(pinned: Pinned, scratch: Path) -> tuple[Path, str]:
    """Download a package into ``scratch``; return the file and its version.

    Raises:
        MissingError: the version is gone, or what came is not what is pinned.
        CommandError: apt failed.
    """
    apt = private_apt(pinned.suite, scratch)
    version = choose_version(pinned, apt.offered(pinned.package))
    package = apt.download(pinned.package, version)
    came = debian_sha256(package)
    if version == pinned.version and came != pinned.sha256:
        raise MissingError(
            f"{pinned.package} {version} has SHA-256 {came}, the recipe pins {pinned.sha256}; "
            "it is not used"
        )
    return package, version


def choose_version(pinned: Pinned, offered: list[str]) -> str:
    """Which of the versions ``offered`` (newest first) to take.

    Raises:
        MissingError: the pinned one is gone, and the recipe does not allow another.
    """
    if pinned.version in offered:
        return pinned.version
    if pinned.newest and offered:
        return offered[0]
    ways = ["set recipe.version and recipe.sha256 to an offered one"] if offered else []
    ways += ['set recipe.when_gone to "newest"'] if not pinned.newest else []
    raise MissingError(
        f"{pinned.package} {pinned.version} is no longer in Debian's suite {pinned.suite} "
        f"(offered: {', '.join(offered) or 'nothing'}); {', or '.join(ways) or 'correct the name'}"
    )


def debian_sha256(package: Path) -> str:
    """SHA-256 hex of a file."""
    with package.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened_debian(package: Path) -> Iterator[IO[bytes]]:
    """The tar archive of a package's files (dpkg-deb(1)), as a file to read from.

    Raises:
        CommandError: it is no Debian package.
    """
    with TemporaryFile() as tar:
        argv = ["dpkg-deb", "--fsys-tarfile", str(package)]
        with proc.started(argv, stdout=tar) as child:
            status = child.wait(_UNPACK_S)
        if status != 0:
            raise proc.CommandError(f"`{' '.join(argv)}` ended with status {status}")
        tar.seek(0)
        yield tar
