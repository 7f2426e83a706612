"""A recording of a page on loopback, freed of everything that differs from load to load.

What is left is the same to the byte on every machine: which requests were made, what led to each,
and what was answered.  Times go, because those of loopback mean nothing, as do the request's
headers, which name the browser, and ``Date``.  The order of requests that were sent at once
depends on races; the canonical one does not:

1. the page's own document;
2. then, document by document and sheet by sheet in this very order, what each of them led to:
   first what its text names, by the place of the first mention, then the rest by URL.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from urllib.parse import urldefrag, urljoin

from testbed.pages.coding import decode
from testbed.pages.recipe.loading import CHANGED, LOSSLESS
from testbed.pages.recording.exchange import Exchange, Recording

_VOLATILE = frozenset({"date"})
_DECODED_LIMIT = 64 * 1024 * 1024


def make_canonical(recording: Recording) -> Recording:
    """``recording`` without times and other accidents, in the canonical order."""
    exchanges = tuple(_bare(exchange) for exchange in _ordered(recording))
    return replace(recording, exchanges=exchanges, load_ms=None)


def _bare(exchange: Exchange) -> Exchange:
    headers = tuple(pair for pair in exchange.headers if pair[0].lower() not in _VOLATILE)
    return replace(exchange, headers=headers, request_headers=(), start_ms=None, dur_ms=None)


def _ordered(recording: Recording) -> list[Exchange]:
    root, *others = recording.exchanges
    known = {exchange.url for exchange in recording.exchanges}
    led: defaultdict[str, list[Exchange]] = defaultdict(list)
    for exchange in others:
        parent = exchange.initiator
        led[parent if parent in known and parent != exchange.url else root.url].append(exchange)
    ordered: list[Exchange] = []
    waiting = deque([root])
    while waiting:
        exchange = waiting.popleft()
        ordered.append(exchange)
        children = led.pop(exchange.url, [])
        places = find_mentions(exchange) if children else {}
        last = len(places)
        children.sort(key=lambda child: (places.get(child.url, last), child.url, child.method))
        waiting.extend(children)
    return ordered


def find_mentions(exchange: Exchange) -> dict[str, int]:
    """The URLs that a document or style sheet loads, each with its place among them."""
    change = CHANGED.get(exchange.mime)
    if change is None or not exchange.body:
        return {}
    encoding = next((v for n, v in exchange.headers if n.lower() == "content-encoding"), "")
    text = decode(exchange.body, encoding, _DECODED_LIMIT).decode(LOSSLESS)
    found: dict[str, int] = {}

    def note(url: str) -> str:
        found.setdefault(urldefrag(urljoin(exchange.url, url)).url, len(found))
        return url

    change(text, note)
    return found
