"""Where in a file the load of a page begins and where it ends: its first and its last request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.base.errors import ConfigurationError
from testbed.pages.importing.addresses import UnusableError, clean_url
from testbed.pages.importing.claim import Claim, Reading, find_header, media_type
from testbed.pages.importing.kept import Kept, time_ms
from testbed.pages.importing.notes import Notes, printable
from testbed.pages.table.row import DOCUMENT_TYPES

PAUSE_MS = 10_000
"""With nothing in flight for so long, the load is over, where the file has no load event."""

_EARLIER = "Requests left out, made before the page's own (--url begins elsewhere)"
_LATER = f"Requests left out, made after a pause of more than {PAUSE_MS // 1000} s (--url)"
_MADE_GET = "The page's own request had another method, made GET"


def find_extent(kept: Sequence[Kept], reading: Reading) -> list[Kept]:
    """The requests of one load in the order of their starts, the page's own first.

    Requests without a time stay where they were, or are in the file's order.  A proxy records a
    session: times count from the page's own request, and a pause ends the load.

    Raises:
        ConfigurationError: there is no request for the page, or none at all.
    """
    notes = reading.notes
    if not kept:
        pages = ", ".join(printable(name) for name in reading.other_pages[:20])
        remedy = [f"other pages of the file have requests: give --page, one of {pages}"]
        raise ConfigurationError(
            [
                "no request is left that can be replayed",
                *(remedy if pages else []),
                *notes.sentences(),
            ]
        )
    ordered = list(kept) if reading.is_ordered else _by_start(kept)
    index = _find_root(ordered, reading.url)
    root = ordered[index]
    start = root.claim.start_ms
    if root.claim.method != "GET":
        notes.add(_MADE_GET, f"{root.claim.method} {root.url}")
        root = replace(root, claim=replace(root.claim, method="GET", request_body_size=0))
    before, after = ordered[:index], ordered[index + 1 :]
    if start is not None and reading.is_session:
        _note(notes, _EARLIER, [item for item in before if _is_before(item, start)])
        before = [item for item in before if not _is_before(item, start)]
    found = [root, *before, *after]
    if reading.is_session and start is not None and time_ms(reading.load_ms) is None:
        found = _until_pause([_shifted(item, start) for item in found], notes)
    return found


def find_documents(kept: Sequence[Kept]) -> list[Kept]:
    """The requests that were answered by a document, those with GET first."""
    documents = [item for item in kept if _is_document(item.claim)]
    return sorted(documents, key=lambda item: item.claim.method != "GET")


def _by_start(kept: Sequence[Kept]) -> list[Kept]:
    times, latest = [], 0.0
    for item in kept:
        latest = latest if item.claim.start_ms is None else item.claim.start_ms
        times.append(latest)
    return [kept[index] for index in sorted(range(len(kept)), key=times.__getitem__)]


def _find_root(kept: Sequence[Kept], url: str | None) -> int:
    if url is None:
        # Redirects come before the document that they lead to.
        if kept[0].claim.method == "GET" and 300 < kept[0].status < 309:
            return 0
        gets = [item for item in kept if item.claim.method == "GET"]
        return kept.index(next(iter([*find_documents(kept), *gets, *kept])))
    try:
        asked = clean_url(url)
    except UnusableError as error:
        raise ConfigurationError([f"--url {printable(url)}: cannot be replayed: {error}"]) from None
    found = [item for item in kept if item.url == asked]
    found.sort(key=lambda item: item.claim.method != "GET")
    if found:
        return kept.index(found[0])
    some = ", ".join(printable(item.url) for item in kept[:3])
    raise ConfigurationError([f"--url {asked}: no request for it; the first ones are {some}"])


def _is_document(claim: Claim) -> bool:
    mime = media_type(find_header(claim.headers, "content-type")) or claim.mime
    return claim.is_frame or mime in DOCUMENT_TYPES


def _is_before(item: Kept, start: float) -> bool:
    return item.claim.start_ms is not None and item.claim.start_ms < start


def _shifted(item: Kept, start: float) -> Kept:
    known = item.claim.start_ms
    return (
        item if known is None else replace(item, claim=replace(item.claim, start_ms=known - start))
    )


def _until_pause(found: Sequence[Kept], notes: Notes) -> list[Kept]:
    end = 0.0
    for index, item in enumerate(found):
        start = item.claim.start_ms
        if start is None:
            continue
        if start > end + PAUSE_MS:
            _note(notes, _LATER, found[index:])
            return list(found[:index])
        end = max(end, start + (item.claim.dur_ms or 0.0))
    return list(found)


def _note(notes: Notes, what: str, items: Sequence[Kept]) -> None:
    for item in items:
        notes.add(what, item.url)
