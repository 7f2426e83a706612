"""From a recipe to a built page: install, split, serve on loopback, record, keep in the cache."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

from testbed.base import places
from testbed.base.checksums import damaged_files, write_checksums
from testbed.base.sources import digest_sources, imported_sources
from testbed.model import digest
from testbed.pages.build import build_page
from testbed.pages.recipe.canonical import make_canonical
from testbed.pages.recipe.capture import capture_recipe
from testbed.pages.recipe.description import Recipe, read_recipe
from testbed.pages.recipe.install import Tell, install
from testbed.pages.recording.writer import write_archive

BODIES = (
    "As they are in the package, but for references, which name the host that a file was given "
    "to; text as gzip of level 6 leaves it. Each file is named by the SHA-256 of its bytes."
)
# What decides what is recorded, beside the recipe, the package and this module with its imports.
DRIVER = places.ROOT / "testbed" / "client" / "chromium" / "driver"


def build_recipe(folder: Path, cache: Path, tell: Tell) -> Path:
    """Build the page that the recipe in ``folder`` makes, unless the cache has it.

    ``cache/packages`` keeps the package, ``cache/recipes`` the recording and ``cache/pages`` the
    built page; each appears whole or not at all, and the last two are made again where they are
    damaged.  The same recipe and package give the same page, to the byte.

    Raises:
        ConfigurationError: the recipe is wrong, or does not fit its package.
        MissingError: the package is not to be had.
        TestbedError: recording failed.
    """
    recipe = read_recipe(folder)
    made = _place(recipe, recipe.version, recipe.checksum, cache)
    if not _is_whole(made, tell):
        installed = install(recipe, cache, tell)
        made = _place(recipe, installed.version, installed.checksum, cache)
        if not _is_whole(made, tell):
            recording = make_canonical(capture_recipe(recipe, installed, tell))
            write_archive(made, recording, licence=recipe.licence, bodies=BODIES, replace=True)
            write_checksums(made.parent)
    return build_page(made, cache / "pages")


def _is_whole(made: Path, tell: Tell) -> bool:
    """Whether the recording is there; one that is damaged is removed."""
    if not made.is_dir():
        return False
    damaged = damaged_files(made.parent)
    if damaged:
        tell(f"{made.name}: {damaged[0]} of its recording is damaged; recording it again")
        shutil.rmtree(made.parent)
    return not damaged


def _place(recipe: Recipe, version: str, checksum: str, cache: Path) -> Path:
    """Where the recording is kept: its name has a hash of all that decides it."""
    inputs = [recipe.digest, version, checksum, zlib.ZLIB_RUNTIME_VERSION, _code_digest()]
    return cache / "recipes" / f"{recipe.name}-{digest(inputs)[:16]}" / recipe.name


def _code_digest() -> str:
    return digest_sources([*imported_sources(__name__), *sorted(DRIVER.glob("*.mjs"))])
