"""Requests as the browser's DevTools protocol reports them, paired with its network log.

The report is written by ``puppeteer/record.mjs``.
"""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wings.pages.recorder.order import RecordError
from wings.pages.recorder.sockets import NetTransfer, plain_url

# The log has whole milliseconds.
SAME_S = 0.0025


@dataclass(frozen=True, slots=True)
class ScriptBody:
    """Digest and size of a body as scripts see it; ``text`` was converted to UTF-8."""

    sha256: str
    size: int
    text: bool


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request that a page, a frame or a worker made.

    Times are the browser's monotonic clock: when it was asked for, when the network stack took
    it, when it ended; ``wait_ms`` is how long its first byte took.  ``source`` says who answered:
    network, memory cache, disk cache, prefetch cache or service worker.  ``initiator`` is the URL
    of a document, style sheet or script, and ``posted`` what the request sent, if that is known.
    """

    id: str
    url: str
    method: str
    type: str
    frame: str | None
    document: str | None
    redirected_from: str | None
    kind: str
    initiator: str | None
    preflight_of: str | None
    sent_s: float
    started_s: float | None
    ended_s: float | None
    status: int
    source: str
    error: str | None
    cancelled: bool
    body: ScriptBody | None
    wait_ms: float | None = None
    posted: bytes | None = None


@dataclass(frozen=True, slots=True)
class PageSocket:
    """A WebSocket of the page; times are the browser's monotonic clock, ``None``: it never was.

    ``frames`` say of each message whether the page sent it, when, its opcode and its payload, in
    Base64 if it is no text.
    """

    url: str
    initiator: str | None
    asked_s: float | None
    opened_s: float | None
    closed_s: float | None
    headers: tuple[tuple[str, str], ...]
    frames: tuple[tuple[bool, float, int, str], ...]


@dataclass(frozen=True, slots=True)
class BrowserReport:
    """The browser driver's report of one load; ``frames`` maps each frame to its parent.

    ``plt_ms`` is the page's own PLT, ``None`` when it did not answer after its load event;
    ``dialogs`` has the kind of each dialog that it opened and the driver accepted, and ``seen``
    the coverage of its scripts and a picture of it, ``None`` when it did not answer.
    """

    browser: str
    title: str
    main_frame: str
    start_s: float
    load_s: float
    plt_ms: float | None
    scrolled: bool | None
    quiet: bool
    requests: tuple[PageRequest, ...]
    frames: dict[str, str]
    sockets: tuple[PageSocket, ...]
    targets: tuple[tuple[str, str], ...]
    dialogs: tuple[str, ...]
    seen: dict[str, Any] | None


def parse_report(value: dict[str, Any]) -> BrowserReport:
    """Return the driver's result.

    Raises:
        RecordError: the driver and this module do not belong together.
    """
    try:
        requests = tuple(_parse_request(item) for item in value.pop("requests"))
        targets = tuple((item["type"], item["url"]) for item in value.pop("targets"))
        sockets = tuple(_parse_socket(item) for item in value.pop("sockets"))
        dialogs = tuple(value.pop("dialogs"))
        return BrowserReport(**value, requests=requests, targets=targets, sockets=sockets,
                             dialogs=dialogs)  # fmt: skip
    except (KeyError, TypeError) as error:
        raise RecordError(
            f"the browser driver's result is another ({error}): it was built from other sources; "
            "start with ./run.sh, which builds it anew"
        ) from None


def _parse_request(item: dict[str, Any]) -> PageRequest:
    initiator = item.pop("initiator")
    changed = {
        "url": plain_url(item["url"]),
        # A document is its own.
        "document": None if item["type"] == "Document" else _plain(item["document"]),
        "redirected_from": _plain(item["redirected_from"]),
        "kind": initiator["type"],
        "initiator": _plain(initiator["url"]),
        "preflight_of": initiator["preflight_of"],
        "body": ScriptBody(**item["body"]) if item["body"] else None,
        "posted": b64decode(item["posted"]) if item.get("posted") else None,
    }
    return PageRequest(**(item | changed))


def _parse_socket(item: dict[str, Any]) -> PageSocket:
    changed = {
        "url": plain_url(item["url"]),
        "initiator": _plain(item["initiator"]["url"]),
        "headers": tuple(item["headers"].items()),
        "frames": tuple(map(tuple, item["frames"])),
    }
    return PageSocket(**(item | changed))


def _plain(url: str | None) -> str | None:
    return plain_url(url) if url and url.startswith(("http://", "https://")) else None


@dataclass(frozen=True, slots=True)
class RequestPairing:
    """``pairs`` in the order of ``transfers``; ``alone`` are requests that reached no network."""

    pairs: tuple[tuple[NetTransfer, PageRequest | None], ...]
    alone: tuple[PageRequest, ...]


def pair(transfers: Sequence[NetTransfer], requests: Sequence[PageRequest]) -> RequestPairing:
    """Pair by method and URL, and among equal ones by the time at which the network took them.

    A request without a response has no such time; it gets what is left, in order.
    """
    paired: dict[int, PageRequest] = {}
    unpaired: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, transfer in enumerate(transfers):
        unpaired[transfer.method, transfer.url].append(place)
    late, alone = [], []
    for request in requests:
        if request.source in ("memory cache", "service worker"):
            alone.append(request)
            continue
        left = unpaired[request.method, request.url]
        index = None if request.started_s is None else _nearest(transfers, left, request.started_s)
        if index is None:
            late.append(request)
        else:
            paired[index] = request
    for request in late:
        index = _first(transfers, unpaired[request.method, request.url], request.sent_s)
        if index is None:
            alone.append(request)
        else:
            paired[index] = request
    pairs = tuple((transfer, paired.get(index)) for index, transfer in enumerate(transfers))
    return RequestPairing(pairs, tuple(alone))


def _nearest(transfers: Sequence[NetTransfer], open_: list[int], started_s: float) -> int | None:
    """Take the one that started at this time, if there is one."""

    def distance(index: int) -> tuple[float, bool]:
        # What a cache answered may have started in the same millisecond.
        return abs(transfers[index].start_s - started_s), transfers[index].position is None

    near = [index for index in open_ if distance(index)[0] <= SAME_S]
    return _take(open_, min(near, key=distance, default=None))


def _first(transfers: Sequence[NetTransfer], open_: list[int], sent_s: float) -> int | None:
    """Take the first one that started later, rather one that left the browser."""
    later = [index for index in open_ if transfers[index].start_s >= sent_s - SAME_S]
    best = min(later, key=lambda at: (transfers[at].position is None, at), default=None)
    return _take(open_, best)


def _take(open_: list[int], chosen: int | None) -> int | None:
    if chosen is not None:
        open_.remove(chosen)
    return chosen
