"""References of an untrusted recording: what led to each request, and redirects that end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from wings.pages.exchange import How, PageExchange, redirect_circles, redirect_target, without
from wings.pages.importing.importer import Claim
from wings.pages.importing.notes import Notes
from wings.pages.importing.sanitiser import UnusableError, clean_url
from wings.pages.table import DOCUMENT_TYPES, REDIRECTS

_HOWS: dict[str, How] = {
    "parser": "parser", "frame": "frame", "css": "css", "script": "script", "other": "other"
}  # fmt: skip
_NOWHERE = "Redirects to what was not recorded, sent as 200"
_CIRCLE = "Redirects in a circle, which end after one round with a 200"


def lead(exchanges: Sequence[PageExchange], claims: Sequence[Claim]) -> list[PageExchange]:
    """Return the exchanges with their initiators; ``claims`` are what each was made from."""
    by_url = {exchange.url: exchange for exchange in reversed(exchanges)}
    roots = {_origin(e.url): e.url for e in reversed(exchanges) if e.mime in DOCUMENT_TYPES}
    led: list[PageExchange] = []
    cleaned: dict[str, str | None] = {}
    for exchange, claim in zip(exchanges, claims, strict=True):
        raw = claim.initiator
        if raw is not None and raw not in cleaned:
            cleaned[raw] = _find(raw, by_url, roots)
        url = None if raw is None else cleaned[raw]
        if url is None or url == exchange.url:
            led.append(exchange)
        else:
            led.append(replace(exchange, initiator=url, how=_how(exchange, claim, by_url[url])))
    return led


def _find(raw: str, by_url: dict[str, PageExchange], roots: dict[str, str]) -> str | None:
    try:
        url = clean_url(raw)
    except UnusableError:
        return None
    if url in by_url:
        return url
    # Most pages let a Referer to another site be cut to the origin.
    return roots.get(_origin(url)) if urlsplit(url).path == "/" else None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _how(exchange: PageExchange, claim: Claim, initiator: PageExchange) -> How:
    if claim.how in _HOWS:
        return _HOWS[claim.how]
    if claim.initiator_kind == "script" or "javascript" in initiator.mime:
        return "script"
    if initiator.mime == "text/css":
        return "css"
    if initiator.mime not in DOCUMENT_TYPES:
        return "other"
    return "frame" if claim.is_frame or exchange.mime in DOCUMENT_TYPES else "parser"


def settle_redirects(exchanges: Sequence[PageExchange], notes: Notes) -> list[PageExchange]:
    """Return the exchanges with sound redirects; a target's initiator is its redirect."""
    urls = {exchange.url for exchange in exchanges}
    return _join(open_circles([_aim(exchange, urls, notes) for exchange in exchanges], notes))


def open_circles(exchanges: Sequence[PageExchange], notes: Notes) -> list[PageExchange]:
    """Return the exchanges with one round of each circle of redirects, and an end to it.

    Browsers give up after 20 redirects, so no replay could load a circle.
    """
    opened = list(exchanges)
    targets = [(x.url, redirect_target(x.url, x.status, x.headers)) for x in opened]
    following = dict(reversed(targets))  # where a URL first leads to, as circles have it
    for entered, closing in tuple(redirect_circles(targets)):
        notes.add(_CIRCLE, closing)
        members, url = {entered}, following[entered]
        while url is not None and url != entered:
            members.add(url)
            url = following[url]
        firsts = {x.url: index for index, x in reversed(tuple(enumerate(opened)))}
        kept = [
            x for index, x in enumerate(opened) if firsts[x.url] == index or x.url not in members
        ]
        opened = [_plain(x) if x.url == closing else x for x in kept]
    return opened


def _aim(exchange: PageExchange, urls: set[str], notes: Notes) -> PageExchange:
    """Return the redirect with a Location that names its target as the recording does."""
    if exchange.status not in REDIRECTS:
        return exchange
    target = redirect_target(exchange.url, exchange.status, exchange.headers)
    locations = [value for name, value in exchange.headers if name.lower() == "location"]
    if target in urls and len(locations) == 1:
        return exchange
    try:
        clean = clean_url(target or "")
    except UnusableError:
        clean = ""
    if clean not in urls:
        notes.add(_NOWHERE, exchange.url)
        return _plain(exchange)
    headers = (*without(exchange.headers, "location"), ("Location", clean))
    return replace(exchange, headers=headers)


def _plain(exchange: PageExchange) -> PageExchange:
    return replace(exchange, status=200, headers=without(exchange.headers, "location"))


def _join(exchanges: Sequence[PageExchange]) -> list[PageExchange]:
    """Return the exchanges such that the next request for a redirect's target is led to by it."""
    joined = list(exchanges)
    waiting: dict[str, str] = {}
    for index, exchange in enumerate(exchanges):
        source = waiting.pop(exchange.url, None)
        if source is not None and index:
            joined[index] = replace(exchange, initiator=source, how="redirect")
        target = redirect_target(exchange.url, exchange.status, exchange.headers)
        if target is not None:
            waiting[target] = exchange.url
    return joined
