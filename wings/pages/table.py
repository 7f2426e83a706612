"""The resource table of a page, ``resources.csv``: one row for each recorded exchange, no contents.

The columns are documented in wings/pages/docs/tables.md.  Reading reports every mistake at once.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import ConfigurationError
from wings.pages.limits import BODIES_BYTES, BODY_BYTES, ENTRIES, mib

PROTOCOLS = ("http", "https", "h2")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ERRORS = frozenset({403, 404, 410, 500, 503})
STATUSES = frozenset({200, 204}) | REDIRECTS | ERRORS
DOCUMENT_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HEADER_BYTES = 480
MIN_HEADER_BYTES = 330
COLUMNS = (
    "id", "parent", "host", "mime", "status", "transfer_bytes", "body_bytes",
    "how", "gap_ms", "start_ms", "dur_ms",
)  # fmt: skip
OPTIONAL_COLUMNS = ("protocol", "head_bytes")
HOW = frozenset({"root", "redirect", "same-host-js", "time-inferred", "url-in-css", "url-in-html",
                 "url-in-js", "url-in-main-html", "url-in-other"})  # fmt: skip
LONGEST_MS = 1_000_000_000
_DEFAULTS = {"protocol": "http", "head_bytes": ""}
_ID = re.compile(r"[A-Za-z0-9_]{1,32}")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")
DEEPEST = 100
"""Steps from the root to a row; scripts that wait for each other are nested as deeply."""


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One recorded exchange; a number that was not recorded is ``None``, as is an unknown type.

    ``transfer_bytes`` counts response head and body, ``body_bytes`` the decoded body,
    ``head_bytes`` the head; ``None`` means a head of ``HEADER_BYTES``.
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
    protocol: str = "http"
    head_bytes: int | None = None

    @property
    def scheme(self) -> str:
        """Of the row's URL: ``http`` or ``https``."""
        return "http" if self.protocol == "http" else "https"

    @property
    def head_size(self) -> int:
        """Bytes of the response head, as far as no reference takes any of them."""
        return min(self.head_bytes or HEADER_BYTES, self.transfer_bytes)


def read_table(path: Path) -> tuple[ResourceRow, ...]:
    """Read and check a resource table.

    Raises:
        ConfigurationError: every problem found, each with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    return parse_table(text, str(path))


def parse_table(text: str, where: str) -> tuple[ResourceRow, ...]:
    """Parse the text of a resource table; ``where`` names it in messages.

    Raises:
        ConfigurationError: every problem found, each with ``where`` and line.
    """
    try:
        reader = csv.reader(text.splitlines())
        first, *lines = [(reader.line_num, cells) for cells in reader] or [(1, [])]
    except csv.Error as error:
        raise ConfigurationError([f"{where}: no CSV: {error}"]) from None
    header = tuple(first[1])
    headers = [COLUMNS + OPTIONAL_COLUMNS[:more] for more in range(len(OPTIONAL_COLUMNS) + 1)]
    if header not in headers:
        raise ConfigurationError(
            [f"{where}:1: the columns are {','.join(header)!r}, expected {','.join(COLUMNS)!r}"
             f" and perhaps {', '.join(OPTIONAL_COLUMNS)}"]
        )  # fmt: skip
    problems: list[str] = []
    rows: list[tuple[int, ResourceRow]] = []
    if len(lines) > ENTRIES:
        raise ConfigurationError([f"{where}: {len(lines)} rows, at most {ENTRIES} are taken"])
    for line, cells in lines:
        if len(cells) != len(header):
            problems.append(f"{where}:{line}: {len(cells)} cells, expected {len(header)}")
            continue
        row_problems, row = _row(_DEFAULTS | dict(zip(header, cells, strict=True)))
        problems += [f"{where}:{line}: {problem}" for problem in row_problems]
        if row is not None:
            rows.append((line, row))
    if not problems:
        problems = [f"{where}:{line}: {problem}" for line, problem in table_problems(rows)]
    if problems:
        raise ConfigurationError(problems)
    return tuple(row for _, row in rows)


def format_table(rows: Sequence[ResourceRow]) -> str:
    """Return the text that ``parse_table`` reads back; times in whole milliseconds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS + OPTIONAL_COLUMNS)
    for row in rows:
        cells = [getattr(row, name) for name in COLUMNS + OPTIONAL_COLUMNS]
        writer.writerow([round(c) if isinstance(c, int | float) else c or "" for c in cells])
    return out.getvalue()


def _row(cells: Mapping[str, str]) -> tuple[list[str], ResourceRow | None]:
    """Return problems of one row by itself, and the row if there are none."""
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
    row = ResourceRow(
        id=check("id", _ID.fullmatch, "letters, digits and _"),
        parent=cells["parent"] or None,
        host=check("host", _HOST.fullmatch, "a host name in lower case"),
        mime=check(
            "mime", lambda text: not text or MEDIA_TYPE.fullmatch(text), "type/subtype or none"
        ),
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


def _size_problems(row: ResourceRow, transfer: int | None) -> Iterator[str]:
    if transfer is None:
        yield "transfer_bytes is missing"
    elif row.head_bytes is not None and row.head_bytes > transfer:
        yield f"head_bytes is {row.head_bytes}, more than transfer_bytes"
    elif row.status == 204 and transfer > row.head_size:
        yield f"a 204 has no body, so transfer_bytes is at most {row.head_size}"


def table_problems(rows: Sequence[tuple[int, ResourceRow]]) -> list[tuple[int, str]]:
    """Return what is wrong with the rows together, each problem with its line."""
    if not rows:
        return [(1, "there are no rows")]
    problems: list[tuple[int, str]] = []
    by_id: dict[str, ResourceRow] = {}
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
    if not problems:
        problems += _cycle_problems(rows, by_id)
    size = sum(max(row.body_bytes or 0, row.transfer_bytes) for _, row in rows)
    if size > BODIES_BYTES:
        too_large = f"bodies of {mib(size)} in all, at most {mib(BODIES_BYTES)} are made"
        problems.append((rows[0][0], too_large))
    if not problems:
        problems += _depth_problems(rows, by_id)
    return problems or [*_protocol_problems(rows), *_mixed_problems(rows, by_id)]


def check_depth(rows: Sequence[ResourceRow]) -> None:
    """Raise ConfigurationError if a row, all of whose parents are there, is too deep."""
    problems = _depth_problems([(0, row) for row in rows], {row.id: row for row in rows})
    if depth_problems := [problem for _, problem in problems]:
        raise ConfigurationError(depth_problems)


def _depth_problems(
    rows: Sequence[tuple[int, ResourceRow]], by_id: Mapping[str, ResourceRow]
) -> Iterator[tuple[int, str]]:
    """Yield the first row of those that are too deep."""
    for line, row in rows:
        steps, at = 0, row
        while at.parent is not None and steps <= DEEPEST:
            at = by_id[at.parent]
            steps += 1
        if steps > DEEPEST:
            yield line, f"id {row.id} is more than {DEEPEST} steps from the root"
            return


def _protocol_problems(rows: Sequence[tuple[int, ResourceRow]]) -> Iterator[tuple[int, str]]:
    """Yield hosts with two protocols: a host has one address with one way to speak to it."""
    spoken: dict[str, str] = {}
    for line, row in rows:
        first = spoken.setdefault(row.host, row.protocol)
        if first != row.protocol:
            yield line, f"host {row.host} has protocol {row.protocol} here and {first} above"


def _mixed_problems(
    rows: Sequence[tuple[int, ResourceRow]], by_id: Mapping[str, ResourceRow]
) -> Iterator[tuple[int, str]]:
    for line, row in rows:
        document = secure_document(row, by_id)
        if row.scheme == "http" and document is not None:
            why = f"below the https document {document.id}: browsers block this as mixed content"
            yield line, f"protocol http {why}"


def secure_document(row: ResourceRow, by_id: Mapping[str, ResourceRow]) -> ResourceRow | None:
    """Return the nearest https document above a row, if there is one: it must not ask for http."""
    while row.parent is not None:
        row = by_id[row.parent]
        if row.scheme == "https" and row.mime in DOCUMENT_TYPES and row.status not in REDIRECTS:
            return row
    return None


def _cycle_problems(
    rows: Sequence[tuple[int, ResourceRow]], by_id: Mapping[str, ResourceRow]
) -> Iterator[tuple[int, str]]:
    settled: set[str] = set()
    for line, row in rows:
        path: dict[str, None] = {}
        at = row
        while at.parent is not None and at.id not in settled and at.id not in path:
            path[at.id] = None
            at = by_id[at.parent]
        if at.id in path:
            yield line, f"id {row.id} is its own ancestor"
        else:
            settled.update(path)
