"""Tables and drawings of the README and the documents, made of the committed results they show.

A table is between ``<!-- table: NAME -->`` and ``<!-- end -->``, and an ending of an evaluator's
command in STATUS.md, which begins with ``prints``, likewise; ``make readme`` writes all of them
anew.  Wings provide theirs to the points ``documents`` and ``endings``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from analysis.records.results import read_results
from analysis.verdicts.committed import hold_against_committed
from analysis.verdicts.compare.comparison import EVERYTHING, CompareOptions
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import headline
from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT
from testbed.base.whole_file import write_whole
from testbed.base.wings import provided

STATUS = ROOT / "STATUS.md"
_NIGHTLY = Path("analysis", "baselines", "nightly")
_BLOCK = re.compile(r"(<!-- (?:table|prints): (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
Tables = Mapping[str, Callable[[Path], str]]
"""The tables of a page by name, each made of what is committed below a root."""


class Documents(Protocol):
    """What a wing writes into documents."""

    PAGES: Mapping[Path, Tables]
    DRAWINGS: Mapping[Path, Callable[[], str]]


def _held(folder: Path, root: Path) -> str:
    return hold_against_committed(read_results(root / folder), root / "analysis" / "baselines")


def _rerun(root: Path) -> str:
    folder = root / _NIGHTLY
    return headline(compare_results(folder, folder, CompareOptions(across=EVERYTHING)))


ENDINGS: Tables = {"artifact": _rerun, "nightly": partial(_held, _NIGHTLY), "rerun": _rerun,
                   "table1": partial(_held, _NIGHTLY.with_name("paper-table1"))}  # fmt: skip


def _fence(ending: Callable[[Path], str], root: Path) -> str:
    return f"```\n{ending(root).rstrip()}\n```\n"


def list_pages() -> dict[Path, Tables]:
    """Return each page with its tables, and STATUS.md with its endings."""
    endings = {**ENDINGS, **{each.name: each.load() for each in provided("endings")}}
    pages: dict[Path, Tables] = {
        STATUS: {name: partial(_fence, ending) for name, ending in endings.items()}
    }
    for each in provided("documents"):
        pages |= each.load().PAGES
    return pages


def list_drawings() -> dict[Path, Callable[[], str]]:
    """Return each drawing by its file."""
    drawings: dict[Path, Callable[[], str]] = {}
    for each in provided("documents"):
        drawings |= each.load().DRAWINGS
    return drawings


def render_page(page: Path, text: str, root: Path = ROOT) -> str:
    """Return the ``text`` of a page with its tables as the committed results below ``root`` say.

    Raises:
        ConfigurationError: a table that is not one of the page's, or one of these is not in it.
        StorageError: its results cannot be read.
    """
    tables, name = list_pages()[page], page.relative_to(ROOT)
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
