"""GitHub Flavored Markdown; text from results is escaped, so that no name can become markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analysis.words import clean

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@&ZeroWidthSpace;"})


def escape(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, no HTML, no mention."""
    return _SPECIAL.sub(r"\\\1", escape_html(text))


def escape_html(text: str) -> str:
    """Return ``text`` for where Markdown has HTML, such as in a summary."""
    return clean(text).translate(_ENTITIES)


def make_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()
) -> list[str]:
    """Return the lines of a table of escaped cells; those of ``numbers`` stand on the right."""
    rules = ("--:" if head in numbers else ":--" for head in heads)
    return [f"| {' | '.join(heads)} |", f"|{'|'.join(rules)}|",
            *(f"| {' | '.join(row)} |" for row in rows)]  # fmt: skip
