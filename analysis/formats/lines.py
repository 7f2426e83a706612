"""Lines of ASCII, which any terminal, mail and log shows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

_PLAIN = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2026": "...", "\u00b1": "+-",
                        "\u201c": '"', "\u201d": '"', "\u00a0": " "})  # fmt: skip


def plain(text: str) -> str:
    """Return ``text`` in ASCII: what has no plain counterpart becomes an escape."""
    return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode()


def wrap(text: str, width: int) -> list[str]:
    """Return ``text`` in ASCII lines of at most ``width`` characters, broken between words."""
    return textwrap.wrap(plain(text), width, break_on_hyphens=False)


def join_lines(lines: Iterable[str]) -> str:
    """Return ``lines`` as one text in ASCII, without blanks at their ends."""
    return "".join(f"{plain(line).rstrip()}\n" for line in lines)
