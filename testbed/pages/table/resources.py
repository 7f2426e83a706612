"""The resource table of a page, ``resources.csv``: one row for each recorded exchange.

The columns are documented in docs/page-tables.md.  Reading reports every mistake at once.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.pages.limits import BODY_BYTES, ENTRIES
from testbed.pages.table.row import (
    DOCUMENT_TYPES,
    ERRORS,
    HEADER_BYTES,
    MIN_HEADER_BYTES,
    PROTOCOLS,
    REDIRECTS,
    STATUSES,
    Row,
)
from testbed.pages.table.tree import table_problems

__all__ = [
    "COLUMNS", "DOCUMENT_TYPES", "ERRORS", "HEADER_BYTES", "HOW", "MIN_HEADER_BYTES",
    "OPTIONAL_COLUMNS", "REDIRECTS", "STATUSES", "Row", "format_table", "parse_table",
    "read_table",
]  # fmt: skip

COLUMNS = (
    "id", "parent", "host", "mime", "status", "transfer_bytes", "body_bytes",
    "how", "gap_ms", "start_ms", "dur_ms",
)  # fmt: skip
OPTIONAL_COLUMNS = ("protocol", "head_bytes")
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

LONGEST_MS = 1_000_000_000
_DEFAULTS = {"protocol": "http", "head_bytes": ""}
_ID = re.compile(r"[A-Za-z0-9_]{1,32}")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")


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
    try:
        header, *lines = [*_lines(text)] or [(1, [])]
    except csv.Error as error:
        raise ConfigurationError([f"{where}: no CSV: {error}"]) from None
    return _parse(tuple(header[1]), lines, where)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines())
    for cells in reader:
        yield reader.line_num, cells


def _parse(
    header: tuple[str, ...], lines: Sequence[tuple[int, list[str]]], where: str
) -> tuple[Row, ...]:
    known = [COLUMNS + OPTIONAL_COLUMNS[:more] for more in range(len(OPTIONAL_COLUMNS) + 1)]
    if header not in known:
        raise ConfigurationError(
            [f"{where}:1: the columns are {','.join(header)!r}, expected {','.join(COLUMNS)!r}"
             f" and perhaps {', '.join(OPTIONAL_COLUMNS)}"]
        )  # fmt: skip
    problems: list[str] = []
    rows: list[tuple[int, Row]] = []
    if len(lines) > ENTRIES:
        raise ConfigurationError([f"{where}: {len(lines)} rows, at most {ENTRIES} are taken"])
    for line, cells in lines:
        if len(cells) != len(header):
            problems.append(f"{where}:{line}: {len(cells)} cells, expected {len(header)}")
            continue
        found, row = _row(_DEFAULTS | dict(zip(header, cells, strict=True)))
        problems += [f"{where}:{line}: {problem}" for problem in found]
        if row is not None:
            rows.append((line, row))
    if not problems:
        problems = [f"{where}:{line}: {problem}" for line, problem in table_problems(rows)]
    if problems:
        raise ConfigurationError(problems)
    return tuple(row for _, row in rows)


def format_table(rows: Sequence[Row]) -> str:
    """The text that ``parse_table`` reads back, with all columns; times in whole milliseconds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS + OPTIONAL_COLUMNS)
    for row in rows:
        cells = (getattr(row, name) for name in COLUMNS + OPTIONAL_COLUMNS)
        writer.writerow("" if cell is None else _whole(cell) for cell in cells)
    return out.getvalue()


def _whole(cell: str | float) -> str | int:
    return cell if isinstance(cell, str) else round(cell)


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
        if parsed is None:
            return None
        most = BODY_BYTES if name.endswith("_bytes") else LONGEST_MS
        if minimum is not None and parsed < minimum:
            problems.append(f"{name} is {parsed}, expected at least {minimum}")
        elif abs(parsed) > most:
            problems.append(f"{name} is {parsed}, expected at most {most}")
        return parsed

    def check(name: str, good: Callable[[str], object], expected: str) -> str:
        if not good(cells[name]):
            problems.append(f"{name} is {cells[name]!r}, expected {expected}")
        return cells[name]

    status = number("status")
    transfer = number("transfer_bytes", MIN_HEADER_BYTES)
    if status not in STATUSES:
        problems.append(f"status is {status}, expected one of {sorted(STATUSES)}")
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
        protocol=check("protocol", PROTOCOLS.__contains__, f"one of {', '.join(PROTOCOLS)}"),
        head_bytes=number("head_bytes", MIN_HEADER_BYTES),
    )
    problems += _size_problems(row, transfer)
    return problems, None if problems else row


def _size_problems(row: Row, transfer: int | None) -> Iterator[str]:
    if transfer is None:
        yield "transfer_bytes is missing"
    elif row.head_bytes is not None and row.head_bytes > transfer:
        yield f"head_bytes is {row.head_bytes}, more than transfer_bytes"
    elif row.status == 204 and transfer > row.head_size:
        yield f"a 204 has no body, so transfer_bytes is at most {row.head_size}"
