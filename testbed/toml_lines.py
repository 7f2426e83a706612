"""On which line each key of a TOML document stands, which ``tomllib`` does not tell.

Works on documents that ``tomllib`` has accepted (TOML 1.0); keys of inline tables count as their
table's key.
"""

from __future__ import annotations

import tomllib

KeyPath = tuple[str, ...]


def find_lines(text: str) -> dict[KeyPath, int]:
    """Map each key path and each table header in ``text`` to its first line, counted from 1."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    rows = text.split("\n")
    row = 0
    while row < len(rows):
        start, line = row, rows[row].strip()
        row += 1
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            table = _key_path(line.strip("[").partition("]")[0], line)
            _note(lines, table, start + 1)
            continue
        while not _complete("\n".join(rows[start:row])) and row < len(rows):
            row += 1
        _note(lines, table + _key_path(line.partition("=")[0], line), start + 1)
    return lines


def locate(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """The line of ``path``, or of the nearest table or key above it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _note(lines: dict[KeyPath, int], path: KeyPath, line: int) -> None:
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], line)


def _complete(statement: str) -> bool:
    """Whether ``key = value`` is whole, asked of tomllib itself: a value may span lines."""
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _key_path(key: str, line: str) -> KeyPath:
    """The parts of a dotted, perhaps quoted key, again by tomllib: ``a."b c"`` gives (a, b c)."""
    try:
        node: object = tomllib.loads(f"{key.strip()} = 0")
    except tomllib.TOMLDecodeError:  # a quoted key that holds '=' or ']': the line as it stands
        return (line,)
    parts: list[str] = []
    while isinstance(node, dict):
        part = next(iter(node))
        parts.append(part)
        node = node[part]
    return tuple(parts)
