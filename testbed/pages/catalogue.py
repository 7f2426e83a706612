"""The pages that there are: one folder each, with a ``page.toml``, of one of three kinds."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from testbed.archive.reading import HAR_NAME
from testbed.base.errors import ConfigurationError
from testbed.pages.facts import FACTS_NAME, read_facts

TABLE_NAME = "resources.csv"
Kind = Literal["table", "archive", "recipe"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def list_pages(root: Path) -> tuple[Path, ...]:
    """The page folders below ``root``, by name; one that is just being written is none."""
    return tuple(
        sorted(
            path.parent
            for path in root.glob(f"*/{FACTS_NAME}")
            if not path.parent.name.startswith(".")
        )
    )


def find_page(root: Path, name: str) -> Path:
    """The folder of the page called ``name``.

    Raises:
        ConfigurationError: there is no such page; the message has the nearest name.
    """
    names = [folder.name for folder in list_pages(root)]
    if name in names:
        return root / name
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"the pages are {', '.join(names) or 'none'}"
    raise ConfigurationError([f"{root}: no page {name!r}; {hint}"])


def name_page(root: Path, name: str, *, replace: bool = False) -> Path:
    """The folder for a new page called ``name``, which is not made yet.

    Raises:
        ConfigurationError: it is no name for a folder, or there is such a page and it is not to
            be replaced.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            [f"{name!r} cannot name a page; use letters, digits, '.', '_', '-', 64 at the most, "
             "and begin with a letter or a digit"]
        )  # fmt: skip
    folder = root / name
    if folder.exists() and not replace:
        raise ConfigurationError(
            [f"{folder}: there is a page of this name; choose another, or give --replace"]
        )
    return folder


def read_kind(folder: Path) -> Kind:
    """Which kind of page ``folder`` holds.

    Raises:
        ConfigurationError: none, more than one, or its ``page.toml`` is wrong.
    """
    found: dict[Kind, str] = {}
    if (folder / TABLE_NAME).exists():
        found["table"] = TABLE_NAME
    if (folder / HAR_NAME).exists():
        found["archive"] = HAR_NAME
    if read_facts(folder / FACTS_NAME).recipe is not None:
        found["recipe"] = f"a [recipe] in {FACTS_NAME}"
    if len(found) == 1:
        return next(iter(found))
    held = " and ".join(found.values()) or "nothing to build"
    raise ConfigurationError(
        [f"{folder}: has {held}; a page has exactly one of {TABLE_NAME} (a table), {HAR_NAME} "
         f"(an archive) and a [recipe] in {FACTS_NAME}"]
    )  # fmt: skip
