"""The resource table of a page, ``resources.csv``: one row for each recorded exchange.

The columns are documented in docs/pages.md.  Reading reports every mistake at once.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import ConfigurationError

COLUMNS = (
    "id", "parent", "host", "mime", "status", "transfer_bytes", "body_bytes",
    "how", "gap_ms", "start_ms", "dur_ms",
)  # fmt: skip
HOW = frozenset(
    {
        "root",
        "redirect",
        "same-host-js",
        "time-inferred",
        "url-in-css",
        "url-in-html",
        "url-in-js",
        "url-in-main-html",
        "url-in-other",
    }
)
STATUSES = frozenset({200, 204, 301, 302, 303, 307, 308})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADER_BYTES = 480
MIN_HEADER_BYTES = 330

_ID = re.compile(r"[A-Za-z0-9_]{1,32}")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded exchange; a number that was not recorded is ``None``, as is an unknown type.

    ``transfer_bytes`` counts response head and body, ``body_bytes`` the decoded body.
    """

    id: str
    parent: str | None
    host: str
    mime: str
    status: int
    transfer_bytes: int
    body_bytes: int | None
    how: str
    gap_ms: float | None
    start_ms: float | None
    dur_ms: float | None


def read_table(path: Path) -> tuple[Row, ...]:
    """Read and check a resource table.

    Raises:
        ConfigurationError: every problem found, each with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    return parse_table(text, str(path))


def parse_table(text: str, where: str) -> tuple[Row, ...]:
    """Parse the text of a resource table; ``where`` names it in messages.

    Raises:
        ConfigurationError: every problem found, each with ``where`` and line.
    """
    reader = csv.reader(text.splitlines())
    header = tuple(next(reader, []))
    if header != COLUMNS:
        raise ConfigurationError(
            [f"{where}:1: the columns are {','.join(header)!r}, expected {','.join(COLUMNS)!r}"]
        )
    problems: list[str] = []
    rows: list[tuple[int, Row]] = []
    for cells in reader:
        line = reader.line_num
        if len(cells) != len(COLUMNS):
            problems.append(f"{where}:{line}: {len(cells)} cells, expected {len(COLUMNS)}")
            continue
        found, row = _row(dict(zip(COLUMNS, cells, strict=True)))
        problems += [f"{where}:{line}: {problem}" for problem in found]
        if row is not None:
            rows.append((line, row))
    if not problems:
        problems = [f"{where}:{line}: {problem}" for line, problem in _tree_problems(rows)]
    if problems:
        raise ConfigurationError(problems)
    return tuple(row for _, row in rows)


def _row(cells: Mapping[str, str]) -> tuple[list[str], Row | None]:
    """Problems of one row by itself, and the row if there are none."""
    problems: list[str] = []

    def number(name: str, minimum: int | None = 0) -> int | None:
        value = cells[name]
        try:
            parsed = int(value) if value else None
        except ValueError:
            problems.append(f"{name} is {value!r}, expected a whole number or nothing")
            return None
        if parsed is not None and minimum is not None and parsed < minimum:
            problems.append(f"{name} is {parsed}, expected at least {minimum}")
        return parsed

    def check(name: str, good: Callable[[str], object], expected: str) -> str:
        if not good(cells[name]):
            problems.append(f"{name} is {cells[name]!r}, expected {expected}")
        return cells[name]

    status = number("status")
    transfer = number("transfer_bytes", MIN_HEADER_BYTES)
    if status not in STATUSES:
        problems.append(f"status is {status}, expected one of {sorted(STATUSES)}")
    if transfer is None:
        problems.append("transfer_bytes is missing")
    if status == 204 and transfer is not None and transfer > HEADER_BYTES:
        problems.append(f"a 204 has no body, so transfer_bytes is at most {HEADER_BYTES}")
    row = Row(
        id=check("id", _ID.fullmatch, "letters, digits and _"),
        parent=cells["parent"] or None,
        host=check("host", _HOST.fullmatch, "a host name in lower case"),
        mime=check("mime", lambda text: not text or _MIME.fullmatch(text), "type/subtype or none"),
        status=status or 0,
        transfer_bytes=transfer or 0,
        body_bytes=number("body_bytes"),
        how=check("how", HOW.__contains__, f"one of {', '.join(sorted(HOW))}"),
        gap_ms=number("gap_ms", None),
        start_ms=number("start_ms"),
        dur_ms=number("dur_ms"),
    )
    return problems, None if problems else row


def _tree_problems(rows: list[tuple[int, Row]]) -> list[tuple[int, str]]:
    """What is wrong with the rows together: one root first, known parents, no cycles."""
    if not rows:
        return [(1, "there are no rows")]
    problems: list[tuple[int, str]] = []
    by_id: dict[str, Row] = {}
    redirected: set[str] = set()
    for line, row in rows:
        if row.id in by_id:
            problems.append((line, f"id {row.id} is there twice"))
        by_id[row.id] = row
    for index, (line, row) in enumerate(rows):
        if (row.parent is None) != (index == 0) or (row.how == "root") != (index == 0):
            problems.append((line, "the first row, and only it, has no parent and is the root"))
        elif row.parent is not None and row.parent not in by_id:
            problems.append((line, f"parent {row.parent} is not in the table"))
        elif row.how == "redirect" and row.parent is not None:
            if by_id[row.parent].status not in REDIRECTS:
                problems.append((line, f"parent {row.parent} redirects here but is no 3xx"))
            if row.parent in redirected:
                problems.append((line, f"parent {row.parent} redirects to two rows"))
            redirected.add(row.parent)
    for line, row in rows:
        if row.status in REDIRECTS and row.id not in redirected:
            problems.append((line, f"status {row.status} without a row that it redirects to"))
        if not problems and _in_cycle(row, by_id):
            problems.append((line, f"id {row.id} is its own ancestor"))
    return problems


def _in_cycle(row: Row, by_id: Mapping[str, Row]) -> bool:
    seen = {row.id}
    while row.parent is not None:
        if row.parent in seen:
            return True
        seen.add(row.parent)
        row = by_id[row.parent]
    return False
