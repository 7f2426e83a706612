"""What a file says about a page load, not yet believed; ``screening`` checks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from testbed.pages.importing.notes import Notes
from testbed.pages.recording.exchange import Headers


@dataclass(frozen=True, slots=True)
class Claim:
    """One request and its response; ``None`` is not recorded, as is a negative number.

    Attributes:
        body: ``None`` when not recorded.
        body_is_decoded: whether ``body`` is what the browser saw, as in a HAR, or what was sent.
        body_size: bytes of the body as transferred.
        size_is_exact: ``body_size`` was counted, not estimated from a size with the head.
        initiator: URL of what led here.
        initiator_kind: ``parser``, ``script`` or nothing.
        how: as ``Exchange.how``, where the file says it; else nothing.
        is_frame: it was loaded as a document of its own.
        after_load: whether it was asked for after the load event; ``None`` leaves it to the times.
        from_cache: it was not transferred in this load.
    """

    url: str
    method: str = "GET"
    status: int = 200
    protocol: str = ""
    request_headers: Headers = ()
    request_body_size: int | None = None
    headers: Headers = ()
    headers_size: int | None = None
    body: bytes | None = None
    body_is_decoded: bool = False
    body_size: int | None = None
    size_is_exact: bool = True
    decoded_size: int | None = None
    mime: str = ""
    initiator: str | None = None
    initiator_kind: str = ""
    how: str = ""
    is_frame: bool = False
    start_ms: float | None = None
    dur_ms: float | None = None
    after_load: bool | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What an importer read.  ``url`` is the page's own, if the file or the caller names it.

    ``claims`` are in the order of the file, or of the requests where the file tells it;
    ``is_ordered`` says that it is the latter, whatever the times say.
    ``is_session`` says that it may be more than one load, as that of a proxy which knows no pages;
    ``other_pages`` are ids of further pages that the file has requests of.
    """

    title: str
    url: str | None
    recorded: date
    source: str
    claims: tuple[Claim, ...]
    notes: Notes
    load_ms: float | None = None
    pinned: bool = False
    is_ordered: bool = False
    is_session: bool = False
    other_pages: tuple[str, ...] = ()


def find_header(headers: Iterable[tuple[str, str]], name: str) -> str:
    """The first value of the header ``name`` (lower case), or nothing."""
    return next((value for found, value in headers if found.lower() == name), "")


def media_type(value: str) -> str:
    """The media type of a Content-Type value, in lower case, without parameters."""
    return value.partition(";")[0].strip().lower()
