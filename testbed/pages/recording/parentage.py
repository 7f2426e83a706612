"""Which exchange led to which: initiators as positions, never later than what they led to."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.archive.head import NOT_MODIFIED
from testbed.pages.recording.exchange import Exchange
from testbed.pages.table.resources import REDIRECTS


@dataclass(frozen=True, slots=True)
class Parentage:
    """For each exchange its parent's position (``None``: the root) and depth; and notes."""

    parents: tuple[int | None, ...]
    depths: tuple[int, ...]
    notes: tuple[str, ...]


def find_parents(exchanges: tuple[Exchange, ...]) -> Parentage:
    """Resolve initiators to the latest earlier exchange of their URL.

    An exchange whose initiator is unknown or was not asked for before it is given to the page's
    own document, which is counted in a note: a page is a tree, or some of it is never found.
    """
    latest: dict[str, int] = {}
    parents: list[int | None] = []
    depths: list[int] = []
    document, orphans, strangers = 0, 0, 0
    for index, exchange in enumerate(exchanges):
        parent: int | None = None
        if index:
            found = None if exchange.initiator is None else latest.get(exchange.initiator)
            orphans += exchange.initiator is None
            strangers += exchange.initiator is not None and found is None
            parent = document if found is None else found
            if exchange.how == "redirect" and parent == document:
                document = _next_document(exchanges, document, index)
        parents.append(parent)
        depths.append(0 if parent is None else depths[parent] + 1)
        if exchange.status != NOT_MODIFIED:
            latest[exchange.url] = index
    notes = []
    if orphans:
        notes.append(f"What led to {_requests(orphans)} is not known; taken to be the document.")
    if strangers:
        notes.append(
            f"What led to {_requests(strangers)} was not asked for before it; "
            "taken to be the document."
        )
    return Parentage(tuple(parents), tuple(depths), tuple(notes))


def _next_document(exchanges: tuple[Exchange, ...], document: int, index: int) -> int:
    """The document is at the end of the redirects that begin at the root."""
    return index if exchanges[document].status in REDIRECTS else document


def _requests(count: int) -> str:
    return f"{count} request{'s' if count != 1 else ''}"
