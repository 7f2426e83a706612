"""Redirects of an untrusted recording: each leads to what was recorded, and none in a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.pages.importing.addresses import UnusableError, clean_url
from testbed.pages.importing.headers import without
from testbed.pages.importing.notes import Notes
from testbed.pages.recording.exchange import Exchange
from testbed.pages.recording.har import redirect_target
from testbed.pages.table.resources import REDIRECTS

_NOWHERE = "Redirects to what was not recorded, sent as 200"
_CIRCLE = "Redirects in a circle, sent as 200"


def settle_redirects(exchanges: Sequence[Exchange], notes: Notes) -> list[Exchange]:
    """The exchanges with sound redirects, each target marked as led to by its redirect."""
    known = {exchange.url for exchange in exchanges}
    sound = [_aim(exchange, known, notes) for exchange in exchanges]
    for index in _circles(sound):
        notes.add(_CIRCLE, sound[index].url)
        sound[index] = _plain(sound[index])
    return _join(sound)


def _aim(exchange: Exchange, known: set[str], notes: Notes) -> Exchange:
    """The redirect with a Location that names its target as the recording does."""
    if exchange.status not in REDIRECTS:
        return exchange
    target = redirect_target(exchange.url, exchange.status, exchange.headers)
    locations = [value for name, value in exchange.headers if name.lower() == "location"]
    if target in known and len(locations) == 1:
        return exchange
    try:
        clean = clean_url(target or "")
    except UnusableError:
        clean = ""
    if clean not in known:
        notes.add(_NOWHERE, exchange.url)
        return _plain(exchange)
    headers = (*without(exchange.headers, "location"), ("Location", clean))
    return replace(exchange, headers=headers)


def _plain(exchange: Exchange) -> Exchange:
    return replace(exchange, status=200, headers=without(exchange.headers, "location"))


def _circles(exchanges: Sequence[Exchange]) -> list[int]:
    """In each circle of redirects that nothing leaves, the position that closes it."""
    position: dict[str, int] = {}
    target: dict[str, str] = {}
    for index, exchange in enumerate(exchanges):
        found = redirect_target(exchange.url, exchange.status, exchange.headers)
        position[exchange.url] = index
        if found is not None:
            target.setdefault(exchange.url, found)
    for exchange in exchanges:
        # A site may redirect to itself once, to see its cookie come back.
        if exchange.status not in REDIRECTS:
            target.pop(exchange.url, None)
    closing: list[int] = []
    settled: set[str] = set()
    for start in target:
        path: list[str] = []
        seen: set[str] = set()
        url: str | None = start
        while url is not None and url not in seen and url not in settled:
            path.append(url)
            seen.add(url)
            url = target.get(url)
        if url in seen:
            closing.append(position[path[-1]])
        settled |= seen
    return closing


def _join(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Each redirect's target, the next request for its URL, is led to by it."""
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
