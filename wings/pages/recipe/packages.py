"""Packages of npm and Debian: from the cache, else from their registry, verified, never unpacked.

Files are read into memory, so no name in an archive can lead anywhere, no link can point out of
it, and no script of the package runs.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.debian import MAIN
from testbed.base.errors import ConfigurationError, MissingError
from testbed.pages.build import Tell
from testbed.root.download import download, list_sources, package_file
from testbed.root.package import open_content
from testbed.root.release import read_index
from wings.pages.recipe.description import Recipe

_NPM_S = 300.0
MAX_BYTES = 512 * 1024 * 1024
_MAX_LINKS = 8


@dataclass(frozen=True, slots=True)
class Installed:
    """A package on disk; ``checksum`` as in the recipe, ``version`` perhaps not the pinned one."""

    archive: Path
    version: str
    checksum: str


def find_installed(recipe: Recipe, cache: Path) -> Installed | None:
    """Return the pinned package of the cache; else the newer one that a run settled on.

    Only ``when_gone = "newest"`` ever stores another version than the pinned one.
    """
    newer_packages = []
    for archive in sorted(_shelf(recipe, cache).glob("[!.]*/*")):
        version = archive.parent.name
        checksum = _checksum(recipe, archive)
        if version == recipe.version:
            if checksum == recipe.checksum:
                return Installed(archive, version, checksum)
        elif recipe.when_gone == "newest":
            newer_packages.append(Installed(archive, version, checksum))
    return newer_packages[0] if newer_packages else None


def install(recipe: Recipe, cache: Path, tell: Tell) -> Installed:
    """Have the package in the cache.

    Raises:
        MissingError: it is not to be had; the message has the remedy.
        CommandError: a registry's client failed.
    """
    cached = find_installed(recipe, cache)
    if cached is not None:
        return cached
    shelf = _shelf(recipe, cache)
    shelf.mkdir(parents=True, exist_ok=True)
    tell(f"fetching {recipe.package} {recipe.version} from {recipe.registry}")
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".fetch-") as folder:
        scratch = Path(folder)
        if recipe.registry == "npm":
            archive, version = _fetch_npm(recipe, scratch), recipe.version
        else:
            archive, version = _fetch_debian(recipe, scratch, tell)
            if version != recipe.version:
                tell(f"{recipe.package} {recipe.version} is gone from Debian; taking {version}, "
                     'as when_gone = "newest" says')  # fmt: skip
        place = shelf / version
        place.mkdir(exist_ok=True)
        archive.replace(place / archive.name)
    installed = find_installed(recipe, cache)
    if installed is None:
        raise MissingError(f"{shelf}: {recipe.package} vanished while it was stored; try again")
    return installed


def read_package(recipe: Recipe, installed: Installed) -> dict[str, bytes]:
    """Return the package's files below the recipe's root.

    Raises:
        ConfigurationError: there are none.
        StorageError: it is no package.
    """
    if recipe.registry == "npm":
        return read_files(installed.archive, recipe.root)
    with open_content(installed.archive) as archive:
        return collect_files(archive, installed.archive, recipe.root)


def _shelf(recipe: Recipe, cache: Path) -> Path:
    return cache / "packages" / recipe.registry / recipe.package.replace("/", "+")


def _checksum(recipe: Recipe, archive: Path) -> str:
    if recipe.registry == "npm":
        return npm_integrity(archive)
    return f"sha256-{file_sha256(archive)}"


def _fetch_npm(recipe: Recipe, scratch: Path) -> Path:
    """Download the tarball of a package into ``scratch`` and verify it (npm-pack(1), no scripts).

    Raises:
        MissingError: npm is missing, cannot get it, or what came is not what is pinned.
    """
    pinned = f"{recipe.package}@{recipe.version}"
    try:
        options = ("--ignore-scripts", "--silent", "--pack-destination", str(scratch))
        proc.run(["npm", "pack", *options, pinned], timeout_s=_NPM_S, cwd=scratch)
    except proc.CommandError as error:
        raise MissingError(
            f"npm cannot fetch {pinned}: {error}; is the registry reachable? "
            f"`npm view {pinned} dist.integrity` must answer"
        ) from None
    (tarball,) = scratch.glob("*.tgz")
    checksum = npm_integrity(tarball)
    if checksum != recipe.checksum:
        given = f"the registry gave {checksum}, the recipe pins {recipe.checksum}"
        raise MissingError(f"{pinned}: {given}; it is not used")
    return tarball


def npm_integrity(tarball: Path) -> str:
    """Return the checksum of a file as npm writes it (Subresource Integrity)."""
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    return f"sha512-{base64.b64encode(digest).decode()}"


def _fetch_debian(recipe: Recipe, scratch: Path, tell: Tell) -> tuple[Path, str]:
    """Download a package into ``scratch``; return the file and its version.

    Raises:
        MissingError: the version is gone, or what is offered is not what is pinned.
    """
    offered = read_index({MAIN: (recipe.suite or "",)}).offered(recipe.package)
    version = choose_version(recipe, [package.version for package in offered])
    package = next(package for package in offered if package.version == version)
    checksum = f"sha256-{package.sha256}"
    if version == recipe.version and checksum != recipe.checksum:
        given = f"has {checksum}, the recipe pins {recipe.checksum}"
        raise MissingError(f"{package.describe()} {given}; it is not used")
    download((package,), scratch, list_sources(), tell)
    file = scratch / PurePosixPath(package.path).name
    return package_file(scratch, package).rename(file), version


def choose_version(recipe: Recipe, offered: list[str]) -> str:
    """Return which of the versions ``offered`` (newest first) to take.

    Raises:
        MissingError: the pinned one is gone, and the recipe does not allow another.
    """
    if recipe.version in offered:
        return recipe.version
    newest = recipe.when_gone == "newest"
    if newest and offered:
        return offered[0]
    ways = ["set recipe.version and recipe.sha256 to an offered one"] if offered else []
    ways += ['set recipe.when_gone to "newest"'] if not newest else []
    raise MissingError(
        f"{recipe.package} {recipe.version} is no longer in Debian's suite {recipe.suite} "
        f"(offered: {', '.join(offered) or 'nothing'}); {', or '.join(ways) or 'correct the name'}"
    )


def read_files(file: Path, root: str, limit: int = MAX_BYTES) -> dict[str, bytes]:
    """Read the files below the folder ``root`` of a tar archive (perhaps gzipped), by their path.

    Raises:
        As ``collect_files``.
    """
    try:
        with tarfile.open(file, mode="r:*") as archive:
            return collect_files(archive, file, root, limit)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ConfigurationError([f"{file}: not a readable tar archive: {error}"]) from None


def collect_files(
    archive: tarfile.TarFile, file: Path, root: str, limit: int = MAX_BYTES
) -> dict[str, bytes]:
    """Return the files below the folder ``root`` of the ``archive`` in ``file``, by their path.

    A symbolic link to a file of the same package counts as that file.

    Raises:
        ConfigurationError: no such folder, or more than ``limit`` bytes of files.
    """
    prefix, size = _inside(root) + "/", 0
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for member in archive:
        name = _inside(member.name)
        if not name.startswith(prefix):
            continue
        if member.issym():
            links[name] = _inside(posixpath.join(posixpath.dirname(name), member.linkname))
        elif member.islnk():
            links[name] = _inside(member.linkname)
        elif member.isfile():
            size += member.size
            content = archive.extractfile(member) if size <= limit else None
            files[name] = content.read() if content else b""
    if size > limit:
        raise ConfigurationError(
            [f"{file}: more than {limit} bytes of files below {root!r}; choose a smaller `root`"]
        )
    files |= {name: files[end] for name in links if (end := _follow(name, links)) in files}
    if not files:
        raise ConfigurationError([f"{file}: has no files below {root!r}; correct recipe.root"])
    return {name.removeprefix(prefix): data for name, data in files.items()}


def _inside(name: str) -> str:
    """Return ``name`` as an absolute path of the archive, out of which no ``..`` leads."""
    return posixpath.normpath(posixpath.join("/", name)).replace("//", "/").rstrip("/")


def _follow(name: str, links: dict[str, str]) -> str:
    for _ in range(_MAX_LINKS):
        if name not in links:
            break
        name = links[name]
    return name
