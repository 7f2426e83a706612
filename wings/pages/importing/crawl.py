"""Crawls: files of many pages, of which one is cut out as its reader's browser loaded it.

A response belongs to the page that the crawler names with it, else to the one whose document or
resource it has as Referer, else to the page that was loaded at its time: since 2020 browsers send
only the origin to other origins (W3C Referrer Policy, strict-origin-when-cross-origin).  A crawler
keeps what several pages share only once, so that a page gets what it names from the others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from html import unescape
from urllib.parse import urljoin, urlsplit

from testbed.base.errors import ConfigurationError
from wings.pages.coding import CodingError, content_coding, decode
from wings.pages.exchange import find_header, redirect_target
from wings.pages.importing.importer import Claim
from wings.pages.importing.notes import Notes, printable
from wings.pages.importing.sanitiser import UnusableError, clean_url
from wings.pages.limits import BODY_BYTES
from wings.pages.table import DOCUMENT_TYPES

_SHOWN = 20
_OTHERS = "Records left out, of other pages by their time and Referer"
_SHARED = "Files that the page shares with another one, taken from there"
# What a document loads by itself, and what a style sheet may.
_LOADED = re.compile(
    rb"<(?:script|img|iframe|source|video|audio|embed|input)\b[^<>]{0,999}?\ssrc="
    rb"\s*[\"']?([^\"'\s>]+)"
    rb"|<link\b(?=[^<>]{0,999}\brel=[\"']?(?:stylesheet|preload|modulepreload)\b)"
    rb"[^<>]{0,999}?\shref=\s*[\"']?([^\"'\s>]+)"
    rb"|\burl\(\s*[\"']?([^\"')\s]+)|@import\s+[\"']([^\"']+)"
    rb"|(?:\bfrom|\bimport)\s*\(?\s*[\"']([^\"'\s]+)[\"']",
    re.IGNORECASE,
)
_SEARCHED = ("text/html", "application/xhtml+xml", "text/css", "text/javascript",
             "application/javascript", "image/svg+xml")  # fmt: skip


@dataclass(frozen=True, slots=True)
class CrawlResponse:
    """One response of a crawl beside the request that it answers; ``page_id`` is the crawler's."""

    claim: Claim
    moment: datetime | None = None
    page_id: str = ""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as the file lists it; ``moment`` is when it was loaded."""

    id: str
    url: str
    title: str = ""
    moment: datetime | None = None


@dataclass
class Crawl:
    """All that a file has: responses, listed pages, and what a page asked for, by id and URL."""

    responses: list[CrawlResponse] = field(default_factory=list)
    pages: list[ListedPage] = field(default_factory=list)
    asked: dict[str, frozenset[str]] = field(default_factory=dict)


def cut_page(
    crawl: Crawl, notes: Notes, *, url: str | None, page_id: str | None = None
) -> tuple[list[CrawlResponse], ListedPage | None]:
    """Return the responses of one page, and the page; all of them if the file has only one.

    It is that with ``page_id`` or ``url``, else the first that has a response.  The URL of the
    page that is returned is what its load began with.

    Raises:
        ConfigurationError: there is no such page; the message has those that are there.
    """
    sequence = _Sequence(crawl.responses)
    pages = crawl.pages or [ListedPage("", each.claim.url, moment=each.moment)
                            for each in crawl.responses if is_navigation(each.claim)]  # fmt: skip
    starts = sequence.find_starts(pages)
    page, start = _choose(pages, starts, sequence, notes, url, page_id)
    if len(pages) < 2 or start is None:
        return crawl.responses, page
    owners = sequence.find_owners(pages, [*starts, start])
    own = [index for index, owner in enumerate(owners) if owner == start]
    if url is not None:  # not with what redirected to it
        start = next((i for i in own if sequence.urls[i] == _clean(url)), start)
        own = [index for index in own if index >= start]
    asked = crawl.asked.get(page.id) or crawl.asked.get(page.url) if page else None
    if asked is not None:
        wanted = {_clean(each) for each in asked}
        own = [i for i in own if i == start or sequence.urls[i] in wanted
               or sequence.is_kept(i, page.id if page else "")]  # fmt: skip
        shared = sequence.share_urls(own, wanted, start)
    else:
        shared = sequence.share_named(own, start)
    for _ in range(len(crawl.responses) - len(own)):
        notes.add(_OTHERS)
    for each in shared:
        notes.add(_SHARED, each.claim.url)
    found = [sequence.responses[index] for index in own]
    begun = replace(page or ListedPage("", ""), url=sequence.responses[start].claim.url)
    return [*found, *shared], begun


def _choose(
    pages: Sequence[ListedPage], starts: Sequence[int | None], sequence: _Sequence, notes: Notes,
    url: str | None, page_id: str | None,
) -> tuple[ListedPage | None, int | None]:  # fmt: skip
    """Return the page that was asked for, or the first, and where in the sequence it begins."""
    named = [f"{printable(page.id)} ({printable(page.url)})" if page.id else printable(page.url)
             for page, start in zip(pages, starts, strict=True) if start is not None]  # fmt: skip
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    remedy = f"the pages are {', '.join(named[:_SHOWN]) or 'not listed'}{more}"
    found = list(zip(pages, starts, strict=True))
    if page_id is not None:
        found = [each for each in found if each[0].id == page_id]
    elif url is not None:
        found = [each for each in found if _clean(each[0].url) == _clean(url)]
        found.append((ListedPage("", url), sequence.first(_clean(url))))
    for page, start in found:
        if start is not None:
            return page, start
        notes.add("Pages of the file without a response in it, passed over", page.url)
    if page_id is not None or (url is not None and len(pages) > 1):
        asked = f"--url {printable(url or '')}" if page_id is None else f"--page {page_id!r}"
        raise ConfigurationError([f"{asked}: no such page with a response; {remedy}"])
    return (ListedPage("", url) if url else None), None


def is_navigation(claim: Claim) -> bool:
    """Return whether a browser said that it went to the document (W3C Fetch Metadata)."""
    return find_header(claim.request_headers, "sec-fetch-dest").strip() == "document"


class _Sequence:
    """Responses in the order of their times, if all have one, else of the file."""

    def __init__(self, responses: Sequence[CrawlResponse]) -> None:
        self.moments = [each.moment for each in responses if each.moment is not None]
        order = list(range(len(responses)))
        self._is_dated = len(self.moments) == len(responses)
        if self._is_dated:
            order.sort(key=self.moments.__getitem__)
            self.moments.sort()
        self.responses = [responses[index] for index in order]
        self.urls = [_clean(each.claim.url) for each in self.responses]
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._targets: list[str | None] = []
        self._led_by: defaultdict[str, list[int]] = defaultdict(list)
        for index, url in enumerate(self.urls):
            self._places[url].append(index)
            claim = self.responses[index].claim
            target = redirect_target(url, claim.status, claim.headers)
            self._targets.append(None if target is None else _clean(target))
            if target is not None:
                self._led_by[_clean(target)].append(index)

    def first(self, url: str) -> int | None:
        """Return where ``url`` was first answered."""
        return next(iter(self._places.get(url, ())), None)

    def find_starts(self, pages: Sequence[ListedPage]) -> list[int | None]:
        """Return where each page begins: at its document, or the first redirect to it."""
        starts: list[int | None] = []
        taken: set[int] = set()
        for page in pages:
            places = self._places.get(_clean(page.url), [])
            own = [i for i in places if page.id and self.responses[i].page_id == page.id] or places
            free = [index for index in own if index not in taken] or own
            moment = page.moment
            if not free:
                starts.append(None)
                continue
            at = free[0]
            if moment is not None and self._is_dated:
                at = min(free, key=lambda index: abs(self.moments[index] - moment))
            taken.add(at)
            while (led := self._led_from(at)) is not None:
                at = led
            starts.append(at)
        return starts

    def _led_from(self, at: int) -> int | None:
        """Return where the redirect is that this answer follows."""
        url = self.urls[at]
        redirects = [index for index in self._led_by.get(url, ()) if index < at]
        if not redirects or any(redirects[-1] < other < at for other in self._places[url]):
            return None
        return redirects[-1]

    def find_owners(self, pages: Sequence[ListedPage], starts: Sequence[int | None]) -> list[int]:
        """Return for each response where the page that it belongs to begins; -1 for none."""
        begun = {start for start in starts if start is not None}
        by_id = {page.id: start for page, start in zip(pages, starts, strict=False)
                 if page.id and start is not None}  # fmt: skip
        by_url: defaultdict[str, set[int]] = defaultdict(set)
        expected: dict[str, int] = {}
        owners: list[int] = []
        current = -1
        for index, url in enumerate(self.urls):
            response, target = self.responses[index], self._targets[index]
            current = index if index in begun and self._is_dated else current
            if index in begun:
                owner = index
            elif response.page_id in by_id:
                owner = by_id[response.page_id]
            elif url in expected:
                owner = expected.pop(url)
            else:
                owner = _by_referer(response.claim, url, by_url, current)
            owners.append(owner)
            by_url[url].add(owner)
            if response.claim.mime in DOCUMENT_TYPES:
                by_url[f"{_origin(url)}/..."].add(owner)
            if target is not None:
                expected[target] = owner
        return owners

    def is_kept(self, index: int, page_id: str) -> bool:
        """Return whether a crawler's list of what a page asked for need not name a response."""
        claim = self.responses[index].claim
        named = bool(page_id) and self.responses[index].page_id == page_id
        return named or claim.method != "GET" or self._targets[index] is not None

    def share_urls(self, own: Sequence[int], urls: set[str], start: int) -> list[CrawlResponse]:
        """Return of ``urls`` what is not among ``own``, from wherever it is."""
        missing = urls - {self.urls[index] for index in own}
        moment = self.responses[start].moment
        return [replace(self._nearest(url, start), moment=moment)
                for url in sorted(missing & self._places.keys())]  # fmt: skip

    def share_named(self, own: Sequence[int], start: int) -> list[CrawlResponse]:
        """Return what the texts of ``own`` load that other pages have.

        What a style sheet or a script names is there, but need not be asked for.
        """
        had = {self.urls[index] for index in own}
        shared: list[CrawlResponse] = []
        waiting = [(self.urls[index], self.responses[index]) for index in own]
        for base, holder in waiting:  # which grows
            for url, is_sure in _loads(base, holder.claim):
                if url in had or url not in self._places:
                    continue
                near = self._nearest(url, start)
                if near.claim.mime in DOCUMENT_TYPES:
                    continue
                had.add(url)
                late = holder.claim.after_load or None if is_sure else True
                claim = replace(near.claim, initiator=base, after_load=late)
                shared.append(CrawlResponse(claim, holder.moment))
                waiting.append((url, shared[-1]))
        return shared

    def _nearest(self, url: str, start: int) -> CrawlResponse:
        return self.responses[min(self._places[url], key=lambda index: abs(index - start))]


def _by_referer(claim: Claim, url: str, by_url: Mapping[str, set[int]], current: int) -> int:
    if claim.initiator is None:
        return current
    referer = _clean(claim.initiator)
    origin = _origin(referer)
    if urlsplit(referer).path == "/" and origin != _origin(url):
        referer = f"{origin}/..."  # any document there may have been cut to its origin
    owners = by_url.get(referer, set())
    return current if current in owners or not owners else max(owners)


def _loads(base: str, claim: Claim) -> Iterator[tuple[str, bool]]:
    """Yield the URLs that a text loads, and whether any browser would."""
    target = redirect_target(base, claim.status, claim.headers)
    if target is not None:
        yield _clean(target), True
    if not claim.body or claim.served_mime not in _SEARCHED:
        return
    try:
        text = decode(claim.body, content_coding(claim.headers), BODY_BYTES)
    except CodingError:
        text = claim.body
    for match in _LOADED.finditer(text):
        raw = match[match.lastindex or 0].decode("utf-8", "replace")
        is_sure = (match.lastindex or 0) < 3 and b"lazy" not in match[0]
        try:
            yield _clean(urljoin(base, unescape(raw))), is_sure
        except ValueError:  # a host in broken brackets
            continue


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _clean(url: str) -> str:
    try:
        return clean_url(url)
    except UnusableError:
        return url
