"""The package of a recipe: from the cache when it is there, else from its registry, verified."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import MissingError
from testbed.pages.recipe.debian import Pinned, debian_sha256, fetch_debian, opened_debian
from testbed.pages.recipe.description import Recipe
from testbed.pages.recipe.npm import fetch_npm, npm_integrity
from testbed.pages.recipe.package import read_files

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installed:
    """A package on disk; ``checksum`` as in the recipe, ``version`` perhaps not the pinned one."""

    archive: Path
    version: str
    checksum: str


def find_installed(recipe: Recipe, cache: Path) -> Installed | None:
    """The package in the cache, whole and as pinned; else the newer one that a run settled on.

    Only ``when_gone = "newest"`` ever leaves another one than the pinned there.
    """
    found = []
    for archive in sorted(_shelf(recipe, cache).glob("[!.]*/*")):
        version = archive.parent.name
        checksum = _checksum(recipe, archive)
        if version == recipe.version:
            if checksum == recipe.checksum:
                return Installed(archive, version, checksum)
        elif recipe.when_gone == "newest":
            found.append(Installed(archive, version, checksum))
    return found[0] if found else None


def install(recipe: Recipe, cache: Path, tell: Tell) -> Installed:
    """Have the package in the cache.

    Raises:
        MissingError: it is not to be had; the message has the remedy.
        CommandError: a registry's client failed.
    """
    found = find_installed(recipe, cache)
    if found is not None:
        return found
    shelf = _shelf(recipe, cache)
    shelf.mkdir(parents=True, exist_ok=True)
    tell(f"fetching {recipe.package} {recipe.version} from {recipe.registry}")
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".fetch-") as folder:
        scratch = Path(folder)
        if recipe.registry == "npm":
            version = recipe.version
            archive = fetch_npm(recipe.package, version, recipe.checksum, scratch)
        else:
            archive, version = fetch_debian(_pinned(recipe), scratch)
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
    """The package's files below the recipe's root.

    Raises:
        ConfigurationError: there are none.
        CommandError: it is no package.
    """
    if recipe.registry == "npm":
        return read_files(installed.archive, recipe.root)
    with opened_debian(installed.archive) as tar:
        return read_files(tar, recipe.root)


def _shelf(recipe: Recipe, cache: Path) -> Path:
    return cache / "packages" / recipe.registry / recipe.package.replace("/", "+")


def _checksum(recipe: Recipe, archive: Path) -> str:
    if recipe.registry == "npm":
        return npm_integrity(archive)
    return f"sha256-{debian_sha256(archive)}"


def _pinned(recipe: Recipe) -> Pinned:
    return Pinned(
        recipe.package,
        recipe.version,
        recipe.checksum.removeprefix("sha256-"),
        recipe.suite,
        newest=recipe.when_gone == "newest",
    )
