"""The pages that there are: one folder each, with a ``page.toml``."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from testbed.errors import ConfigurationError


def list_pages(root: Path) -> tuple[Path, ...]:
    """The page folders below ``root``, by name."""
    return tuple(sorted(path.parent for path in root.glob("*/page.toml")))


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
