"""Line numbers of the keys of a TOML document, which ``tomllib`` does not give.

Works on documents that ``tomllib`` has accepted (TOML 1.0); keys of inline tables count as their
table's key.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

KeyPath = tuple[str, ...]


_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'{3}.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document that ``text`` is.

    Raises:
        tomllib.TOMLDecodeError: it is none, or beyond what ``tomllib`` can read.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("Nested too deeply (at end of document)") from None
    except ValueError as error:  # of int(), for a number of thousands of digits
        raise tomllib.TOMLDecodeError(f"{error} (at end of document)") from None


def find_lines(text: str) -> dict[KeyPath, int]:
    """Map each key path and each table header in ``text`` to its first line, counted from 1."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    number, at = 1, 0
    while at < len(text):
        end = _statement_end(text, at)
        line = text[at:end].partition("\n")[0].strip()
        if line.startswith("["):
            table = _key_path(line.strip("[").partition("]")[0], line)
            _note(lines, table, number)
        elif line and not line.startswith("#"):
            _note(lines, table + _key_path(line.partition("=")[0], line), number)
        number += text.count("\n", at, end + 1)
        at = end + 1
    return lines


def locate(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of ``path``, or of the nearest table or key above it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _note(lines: dict[KeyPath, int], path: KeyPath, line: int) -> None:
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], line)


def _statement_end(text: str, at: int) -> int:
    """Return the end of the line on which the statement at ``at`` ends: a value may span lines."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        mark = token[0]
        if mark == "\n" and not depth:
            return token.start()
        depth += (mark in "[{") - (mark in "]}")
    return len(text)


def _key_path(key: str, line: str) -> KeyPath:
    """Return the parts of a dotted, perhaps quoted key: ``a."b c"`` gives (a, b c)."""
    try:
        node: object = tomllib.loads(f"{key.strip()} = 0")
    except tomllib.TOMLDecodeError:  # a quoted key that holds '=' or ']': the line as it is
        return (line,)
    parts: list[str] = []
    while isinstance(node, dict):
        part = next(iter(node))
        parts.append(part)
        node = node[part]
    return tuple(parts)
