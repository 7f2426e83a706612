"""What is wrong with the rows of a resource table together: parents, redirects, protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from testbed.page.row import DOCUMENT_TYPES, REDIRECTS, Row


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
        if not problems and _in_cycle(row, by_id):
            problems.append((line, f"id {row.id} is its own ancestor"))
    return problems or [*_protocol_problems(rows), *_mixed_problems(rows, by_id)]


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


def _in_cycle(row: Row, by_id: Mapping[str, Row]) -> bool:
    seen = {row.id}
    while row.parent is not None:
        if row.parent in seen:
            return True
        seen.add(row.parent)
        row = by_id[row.parent]
    return False
