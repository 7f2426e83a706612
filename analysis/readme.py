"""Tables and drawings of the README and the documents, made of the committed results they show.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``; ``make readme`` writes all of them
anew, and the endings in STATUS.md.  Wings provide theirs to the point ``documents``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from analysis.status import STATUS, render_status
from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT
from testbed.base.whole_file import write_whole
from testbed.base.wings import provided

_BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
Tables = Mapping[str, Callable[[Path], str]]
"""The tables of a page by name, each made of what is committed below a root."""


class Documents(Protocol):
    """What a wing writes into documents."""

    PAGES: Mapping[Path, Tables]
    DRAWINGS: Mapping[Path, Callable[[], str]]


def list_pages() -> dict[Path, Tables]:
    """Return each page with its tables."""
    pages: dict[Path, Tables] = {}
    for documents in _documents():
        pages |= documents.PAGES
    return pages


def list_drawings() -> dict[Path, Callable[[], str]]:
    """Return each drawing by its file."""
    drawings: dict[Path, Callable[[], str]] = {}
    for documents in _documents():
        drawings |= documents.DRAWINGS
    return drawings


def _documents() -> Iterator[Documents]:
    for each in provided("documents"):
        yield each.load()


def render_page(page: Path, text: str, root: Path = ROOT) -> str:
    """Return the ``text`` of a page with its tables as the committed results below ``root`` say.

    Raises:
        ConfigurationError: a table that is not one of the page's, or one of these is not in it.
        StorageError: its results cannot be read.
    """
    tables, name = list_pages()[page], page.stem
    named = [match[2] for match in _BLOCK.finditer(text)]
    problems = [f"{name}: no table is called {each}" for each in named if each not in tables]
    problems += [f"{name}: the table {each} is missing" for each in tables if each not in named]
    if problems:
        raise ConfigurationError(problems)
    return _BLOCK.sub(lambda match: f"{match[1]}{tables[match[2]](root)}{match[3]}", text)


if __name__ == "__main__":
    for path, make in list_drawings().items():
        write_whole(path, make(), f"{path.name} is as it was")
    for page in list_pages():
        written = render_page(page, page.read_text(encoding="utf-8"))
        write_whole(page, written, f"{page.name} is as it was")
    endings = render_status(STATUS.read_text(encoding="utf-8"))
    write_whole(STATUS, endings, "STATUS.md is as it was")
