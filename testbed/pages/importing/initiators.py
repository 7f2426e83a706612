"""What led to each request of an untrusted recording, as far as it is in the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from testbed.pages.importing.addresses import UnusableError, clean_url
from testbed.pages.importing.claim import Claim
from testbed.pages.recording.exchange import Exchange, How

_HOWS: dict[str, How] = {
    "parser": "parser", "frame": "frame", "css": "css", "script": "script", "other": "other"
}  # fmt: skip
_HTML = ("text/html", "application/xhtml+xml")


def lead(exchanges: Sequence[Exchange], claims: Sequence[Claim]) -> list[Exchange]:
    """The exchanges with their initiators; ``claims`` are what each was made from."""
    by_url = {exchange.url: exchange for exchange in reversed(exchanges)}
    roots = {_origin(e.url): e.url for e in reversed(exchanges) if e.mime in _HTML}
    led: list[Exchange] = []
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


def _find(raw: str, by_url: dict[str, Exchange], roots: dict[str, str]) -> str | None:
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


def _how(exchange: Exchange, claim: Claim, initiator: Exchange) -> How:
    if claim.how in _HOWS:
        return _HOWS[claim.how]
    if claim.initiator_kind == "script" or "javascript" in initiator.mime:
        return "script"
    if initiator.mime == "text/css":
        return "css"
    if initiator.mime not in _HTML:
        return "other"
    return "frame" if claim.is_frame or exchange.mime in _HTML else "parser"
