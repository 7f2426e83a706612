"""Exchanges of one page load, as a recorder saw or an importer read them, bodies in memory.

Everything that makes an archive goes through these types: ``recorder``, ``importing``, redaction,
anonymising; ``har`` turns a Recording into the folder that ``archive`` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal
from urllib.parse import urldefrag, urljoin

from testbed.archive.head import NOT_MODIFIED
from testbed.archive.posted import Posted, digest_body
from testbed.archive.reading import Entry
from testbed.base.units import format_bytes, format_count
from testbed.model.device import BrowserDevice
from wings.pages.fidelity import Seen
from wings.pages.table import REDIRECTS

HttpProtocol = Literal["http/1.1", "h2"]
How = Literal["root", "redirect", "parser", "frame", "css", "script", "other"]
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PageExchange:
    """One request and its response.

    Attributes:
        url: absolute http or https URL, ASCII, without a fragment or user information.
        status: HTTP status; 0 with a ``failure`` and no response.
        protocol: ``h2`` is HTTP/2 or HTTP/3, which is replayed as HTTP/2.
        request_headers: as sent.
        request_body_size: bytes of the request's body.
        request_body: the request's body, of which an archive keeps digests; ``None`` when unknown.
        posted: those digests, where they are all that is known.
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
        made_up: the body was not recorded: one of its size stands in for it.
        failure: how it failed in the browser, as ``testbed.archive.failures`` has it.
        wait_ms: for how long its first byte was waited for, the way there and back included.
        pieces: of a body that came bit by bit, ms behind the one before and bytes.
        open: it had no end.
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
    made_up: bool = False
    failure: str | None = None
    wait_ms: float | None = None
    request_body: bytes | None = None
    posted: Posted | None = None
    pieces: tuple[tuple[float, int], ...] = ()
    open: bool = False

    def digests(self) -> Posted | None:
        """Return the digests of the request's body, if it has one and it is known."""
        if not self.request_body:
            return self.posted
        return digest_body(self.request_body, find_header(self.request_headers, "content-type"))

    def gap_ms(self, parent: PageExchange | None) -> float | None:
        """Return the time from the end of ``parent`` to this request; ``None`` when unknown."""
        if parent is None or parent.start_ms is None or parent.dur_ms is None:
            return None
        return None if self.start_ms is None else self.start_ms - parent.start_ms - parent.dur_ms


def describe_made_up(responses: Iterable[PageExchange | Entry]) -> str:
    """Return how much was made up, as ``3 of 8 bodies, 1.0 KiB of 2.5 MiB``; nothing if none."""
    bodies = [response for response in responses if response.body_size]
    made_up = [body for body in bodies if body.made_up]
    if not made_up:
        return ""
    sizes = (format_bytes(sum(body.body_size for body in those)) for those in (made_up, bodies))
    return f"{len(made_up)} of {format_count(len(bodies), 'body', 'bodies')}, {' of '.join(sizes)}"


@dataclass(frozen=True, slots=True)
class Recording:
    """One load of a page, exchanges in the order in which their requests were sent.

    ``url`` is the first exchange's.  ``source`` says in a sentence where it comes from.
    ``pinned`` says that clocks and random numbers of scripts were pinned, ``device`` on what it
    was, if not on the lab's own browser as it is.  ``load_ms`` is the recorded PLT, ``seen`` what
    the page ran and showed.  ``notes`` has one sentence for each thing that could not be captured
    or was repaired: nothing is dropped silently.
    """

    title: str
    url: str
    recorded: date
    source: str
    exchanges: tuple[PageExchange, ...]
    pinned: bool = False
    load_ms: float | None = None
    notes: tuple[str, ...] = ()
    seen: Seen | None = None
    device: BrowserDevice | None = None


def find_parents(
    exchanges: Sequence[PageExchange],
) -> tuple[list[int | None], tuple[str, ...]]:
    """Return each exchange's parent's position (``None``: the root), and notes.

    It is the latest earlier exchange of the initiator's URL.

    An exchange without a known initiator before it becomes a child of the page's document, and a
    note counts it.  A page must be a tree: a client reaches every exchange by its parent.
    """
    latest: dict[str, int] = {}
    parents: list[int | None] = []
    document, orphans, strangers = 0, 0, 0
    for index, exchange in enumerate(exchanges):
        parent: int | None = None
        if index:
            parent_index = None if exchange.initiator is None else latest.get(exchange.initiator)
            orphans += exchange.initiator is None
            strangers += exchange.initiator is not None and parent_index is None
            parent = document if parent_index is None else parent_index
            if exchange.how == "redirect" and parent == document:
                # The document is at the end of the redirects that begin at the root.
                document = index if exchanges[document].status in REDIRECTS else document
        parents.append(parent)
        if exchange.status != NOT_MODIFIED:
            latest[exchange.url] = index
    notes = []
    if orphans:
        what = format_count(orphans, "request")
        notes.append(f"What led to {what} is not known; taken to be the document.")
    if strangers:
        what = format_count(strangers, "request")
        notes.append(f"What led to {what} was not asked for before it; taken to be the document.")
    return parents, tuple(notes)


def find_header(headers: Iterable[tuple[str, str]], name: str) -> str:
    """Return the first value of the header ``name`` (lower case), or nothing."""
    return next((value for key, value in headers if key.lower() == name), "")


def without(headers: Headers, name: str) -> Headers:
    """Return the headers but those called ``name`` (lower case)."""
    return tuple(pair for pair in headers if pair[0].lower() != name)


def redirect_target(url: str, status: int, headers: Headers) -> str | None:
    """Return the absolute URL that a response sends the browser to (RFC 9110 section 10.2.2)."""
    values = [value for name, value in headers if name.lower() == "location"]
    if status not in REDIRECTS or not values:
        return None
    try:
        return urldefrag(urljoin(url, values[0])).url
    except ValueError:  # a host in broken brackets
        return values[0]


def redirect_circles(redirects: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    """Yield as ``find_circles`` the redirects that lead back to themselves and to nothing else.

    ``redirects`` has for each response its URL and the one that it redirects to, if it does.
    """
    following: dict[str, str] = {}
    answered: set[str] = set()  # a site may redirect to itself once, to see its cookie come back
    for url, target in redirects:
        if target is None:
            answered.add(url)
        else:
            following.setdefault(url, target)
    yield from find_circles({u: target for u, target in following.items() if u not in answered})


def find_circles(following: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield for each circle, once, the URL that it is entered by and the one that leads there."""
    settled: set[str] = set()
    for start in following:
        path: dict[str, None] = {}
        url: str | None = start
        while url is not None and url not in path and url not in settled:
            path[url] = None
            url = following.get(url)
        if url in path:
            yield url, next(reversed(path))
        settled.update(path)
