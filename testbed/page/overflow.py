"""Gives what a document is too small to name to a script, as small documents of our time do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.errors import ConfigurationError
from testbed.page.discovery import Discovery
from testbed.page.document import document_template
from testbed.page.row import MIN_HEADER_BYTES, Row

# A gzip member's frame, and what filler of any length costs at the least.
_FRAME_BYTES = 64
_TITLE_BYTES = 80


def relieve_document(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows with the last children of the page's document moved to its largest script.

    As few as need be; how many is told.  Where no script is there, nothing is moved.
    """
    try:
        page = Discovery(rows)
    except ConfigurationError:  # no document at all: building says so better
        return list(rows), 0
    root = page.root
    scripts = [
        row
        for row in rows
        if row.parent == root.id and row.status == 200 and page.role(row) == "script"
    ]
    room = root.transfer_bytes - MIN_HEADER_BYTES - _FRAME_BYTES - _TITLE_BYTES
    if not scripts or _fixed_bytes(page) <= room:
        return list(rows), 0
    script = max(scripts, key=lambda row: row.transfer_bytes)
    movable = [row.id for row in rows if row.parent == root.id and row.how != "redirect"]
    movable = [name for name in movable if name != script.id]
    low, high = 0, len(movable)
    while low < high:
        middle = (low + high) // 2
        if _fixed_bytes(Discovery(_moved(rows, movable, middle, script))) <= room:
            high = middle
        else:
            low = middle + 1
    return _moved(rows, movable, low, script), low


def _moved(rows: Sequence[Row], movable: Sequence[str], count: int, script: Row) -> list[Row]:
    """The rows with the last ``count`` of ``movable`` below the script."""
    names = set(movable[len(movable) - count :])
    return [
        replace(row, parent=script.id, how="url-in-js", gap_ms=_gap_ms(script, row))
        if row.id in names
        else row
        for row in rows
    ]


def _gap_ms(parent: Row, child: Row) -> float | None:
    if parent.start_ms is None or parent.dur_ms is None or child.start_ms is None:
        return None
    return child.start_ms - parent.start_ms - parent.dur_ms


def _fixed_bytes(page: Discovery) -> int:
    parts = document_template(page, page.root, "")
    return sum(len(part) for part in parts if isinstance(part, bytes))
