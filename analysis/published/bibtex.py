"""BibTeX entries of the tool and of the publications: those of ``publications.bib``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).with_name("publications.bib")
TOOL = "firstflight"
_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}$", re.DOTALL | re.MULTILINE)


def read_entries() -> dict[str, str]:
    """Return all entries by their keys."""
    text = FILE.read_text(encoding="utf-8")
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


def cite(revision: str | None, reference: str | None) -> Iterator[str]:
    """Yield the tool's entry with its ``revision``, and that of what a reference was taken from.

    A reference begins with the key of its publication: ``fastopen-table1`` with ``fastopen``.
    A table of one's own need not have an entry.
    """
    entries = read_entries()
    end = "\n}"
    note = f",\n  note = {{Revision {revision}}}" if revision else ""
    yield entries[TOOL].removesuffix(end) + note + end
    publication = entries.get((reference or "").partition("-")[0])
    if publication is not None:
        yield publication
