"""What is wrong with the rows of a resource table together: parents, redirects, protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testbed.base.errors import ConfigurationError
from testbed.pages.limits import BODIES_BYTES, mib
from testbed.pages.table.row import DOCUMENT_TYPES, REDIRECTS, Row

DEEPEST = 100
"""Steps from the root to a row; scripts that wait for each other are nested as deeply."""


def table_problems(rows: Sequence[tuple[int, Row]]) -> list[tuple[int, str]]:
    """What is wrong with the rows, given with their lines, together; the line with each problem."""
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
    if not problems:
        problems += _cycle_problems(rows, by_id)
    problems += _size_problems(rows)
    if not problems:
        problems += _depth_problems(rows, by_id)
    return problems or [*_protocol_problems(rows), *_mixed_problems(rows, by_id)]


def check_depth(rows: Sequence[Row]) -> None:
    """Raise ConfigurationError if a row, all of whose parents are there, is too deep."""
    problems = _depth_problems([(0, row) for row in rows], {row.id: row for row in rows})
    if found := [problem for _, problem in problems]:
        raise ConfigurationError(found)


def _size_problems(rows: Sequence[tuple[int, Row]]) -> Iterator[tuple[int, str]]:
    size = sum(max(row.body_bytes or 0, row.transfer_bytes) for _, row in rows)
    if size > BODIES_BYTES:
        yield rows[0][0], f"bodies of {mib(size)} in all, at most {mib(BODIES_BYTES)} are made"


def _depth_problems(
    rows: Sequence[tuple[int, Row]], by_id: Mapping[str, Row]
) -> Iterator[tuple[int, str]]:
    """The first row of those that are too deep."""
    for line, row in rows:
        steps, at = 0, row
        while at.parent is not None and steps <= DEEPEST:
            at = by_id[at.parent]
            steps += 1
        if steps > DEEPEST:
            yield line, f"id {row.id} is more than {DEEPEST} steps from the root"
            return


def _protocol_problems(rows: Sequence[tuple[int, Row]]) -> Iterator[tuple[int, str]]:
    """A host has one address with one way to speak to it."""
    spoken: dict[str, str] = {}
    for line, row in rows:
        first = spoken.setdefault(row.host, row.protocol)
        if first != row.protocol:
            yield line, f"host {row.host} has protocol {row.protocol} here and {first} above"


def _mixed_problems(
    rows: Sequence[tuple[int, Row]], by_id: Mapping[str, Row]
) -> Iterator[tuple[int, str]]:
    for line, row in rows:
        document = secure_document(row, by_id)
        if row.scheme == "http" and document is not None:
            yield (
                line,
                (
                    f"protocol http below the https document {document.id}: browsers block this as "
                    "mixed content"
                ),
            )


def secure_document(row: Row, by_id: Mapping[str, Row]) -> Row | None:
    """The nearest https document above a row, if there is one: it must not ask for http."""
    while row.parent is not None:
        row = by_id[row.parent]
        if row.scheme == "https" and row.mime in DOCUMENT_TYPES and row.status not in REDIRECTS:
            return row
    return None


def _cycle_problems(
    rows: Sequence[tuple[int, Row]], by_id: Mapping[str, Row]
) -> Iterator[tuple[int, str]]:
    settled: set[str] = set()
    for line, row in rows:
        seen: dict[str, None] = {}
        at = row
        while at.parent is not None and at.id not in settled and at.id not in seen:
            seen[at.id] = None
            at = by_id[at.parent]
        if at.id in seen:
            yield line, f"id {row.id} is its own ancestor"
        else:
            settled.update(seen)
