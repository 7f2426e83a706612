"""What a recorder saw or an importer read: the exchanges of one page load, bodies in memory.

Everything that makes an archive goes through these types: ``recorder``, ``importing``, redaction,
anonymising; ``writer`` turns a Recording into the folder that ``archive`` reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

HttpProtocol = Literal["http/1.1", "h2"]
How = Literal["root", "redirect", "parser", "frame", "css", "script", "other"]
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response.

    Attributes:
        url: absolute http or https URL, ASCII, without a fragment or user information.
        status: HTTP status, never 0.
        protocol: ``h2`` stands for HTTP/2 and for HTTP/3, which is replayed as HTTP/2.
        request_headers: as sent.
        request_body_size: bytes of the request's body.
        headers: all response headers as received, in order.
        headers_size: bytes of the response head in HTTP/1.1 form, from the status line to the
            blank line; ``None`` when unknown, as for HTTP/2.
        body: as transferred: still compressed, no longer chunked; ``None`` when not recorded.
        body_size: bytes of the body as transferred; the length of ``body`` if there is one.
        decoded_size: bytes of the body as the browser sees it; ``None`` when unknown.
        mime: media type without parameters, lower case; empty if there was none.
        initiator: URL of the exchange that led to this one; ``None`` for the root or when unknown.
        start_ms, dur_ms: since the start of the load; ``None`` when unknown.
        after_load: whether the request began after the load event.
    """

    url: str
    status: int
    method: str = "GET"
    protocol: HttpProtocol = "http/1.1"
    request_headers: Headers = ()
    request_body_size: int = 0
    headers: Headers = ()
    headers_size: int | None = None
    body: bytes | None = b""
    body_size: int = 0
    decoded_size: int | None = 0
    mime: str = ""
    initiator: str | None = None
    how: How = "other"
    start_ms: float | None = None
    dur_ms: float | None = None
    after_load: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """One load of a page, exchanges in the order in which their requests were sent.

    ``url`` is the first exchange's.  ``source`` says in a sentence where it comes from.
    ``pinned`` says that clocks and random numbers of scripts were pinned.  ``load_ms`` is the
    recorded PLT.  ``notes`` has one sentence for each thing that could not be captured or was
    repaired: nothing is dropped silently.
    """

    title: str
    url: str
    recorded: date
    source: str
    exchanges: tuple[Exchange, ...]
    pinned: bool = False
    load_ms: float | None = None
    notes: tuple[str, ...] = ()
