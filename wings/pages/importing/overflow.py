"""Overflow of documents that are too small for what they name: a script names it instead.

Where there is no script, the document grows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from testbed.base.errors import ConfigurationError
from wings.pages.synthesis.bodies import discover
from wings.pages.synthesis.discovery import Discovery
from wings.pages.synthesis.filler import fixed_bytes
from wings.pages.synthesis.markup import document_template
from wings.pages.table import MIN_HEADER_BYTES, ResourceRow

# A gzip member's frame, and what filler of any length costs at the least.
_FRAME_BYTES = 64
_TITLE_BYTES = 80
_LARGEST_GROWTH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RelievedRows:
    """Rows whose document holds what it must, how many moved to a script, and bytes added."""

    rows: list[ResourceRow]
    moved: int = 0
    added_bytes: int = 0


def relieve_document(rows: Sequence[ResourceRow]) -> RelievedRows:
    """Move the last children of the page's document to its largest script, as few as need be.

    What is still too small then, as it has no script, is made larger.
    """
    try:
        page = Discovery(rows)
    except ConfigurationError:  # no document at all: building says so better
        return RelievedRows(list(rows))
    relief = _move(rows, page)
    added = max(_fixed_bytes(Discovery(relief.rows)) - _room(page.root), 0)
    grown = _grow(relief, page.root, added)
    # Style sheets that are too small leave their pictures to it: how many, synthesis finds.
    while not _can_be_built(grown.rows) and added < _LARGEST_GROWTH_BYTES:
        added = max(2 * added, 1024)
        grown = _grow(relief, page.root, added)
    return grown


def _move(rows: Sequence[ResourceRow], page: Discovery) -> RelievedRows:
    root = page.root
    children = [row for row in rows if row.parent == root.id]
    scripts = [row for row in children if row.status == 200 and page.role(row) == "script"]
    if not scripts or _fixed_bytes(page) <= _room(root):
        return RelievedRows(list(rows))
    script = max(scripts, key=lambda row: row.transfer_bytes)
    movable = [row.id for row in children if row.how != "redirect" and row is not script]

    def fits(count: int) -> bool:
        return _fixed_bytes(Discovery(_moved(rows, movable, count, script))) <= _room(root)

    least = bisect_left(range(len(movable)), True, key=fits)
    return RelievedRows(_moved(rows, movable, least, script), least)


def _grow(relief: RelievedRows, root: ResourceRow, shortage: int) -> RelievedRows:
    if not shortage:
        return relief
    # Not compressed: what so small a document names can hardly be compressed.
    larger = replace(root, transfer_bytes=root.transfer_bytes + shortage, body_bytes=None)
    rows = [larger if row.id == root.id else row for row in relief.rows]
    return RelievedRows(rows, relief.moved, shortage)


def _can_be_built(rows: Sequence[ResourceRow]) -> bool:
    try:
        discover("page", "", rows)
    except ConfigurationError:
        return False
    return True


def _room(root: ResourceRow) -> int:
    """Return bytes that the document's body has for markup."""
    return root.transfer_bytes - MIN_HEADER_BYTES - _FRAME_BYTES - _TITLE_BYTES


def _moved(
    rows: Sequence[ResourceRow], movable: Sequence[str], count: int, script: ResourceRow
) -> list[ResourceRow]:
    """Return the rows with the last ``count`` of ``movable`` below the script."""
    names = set(movable[len(movable) - count :])

    def moved(row: ResourceRow) -> ResourceRow:
        return replace(row, parent=script.id, how="url-in-js", gap_ms=_gap_ms(script, row))

    return [moved(row) if row.id in names else row for row in rows]


def _gap_ms(parent: ResourceRow, child: ResourceRow) -> float | None:
    if parent.start_ms is None or parent.dur_ms is None or child.start_ms is None:
        return None
    return child.start_ms - parent.start_ms - parent.dur_ms


def _fixed_bytes(page: Discovery) -> int:
    return fixed_bytes(document_template(page, page.root, ""))
