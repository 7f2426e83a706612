"""HAR 1.2 of a recorded or imported page; ``archive`` reads it back.

Source: http://www.softwareishard.com/blog/har-12-spec/
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit

from testbed.archive.head import REASONS, natural_size, reachable_size
from testbed.archive.reading import NOT_REPLAYED, split_url
from testbed.pages.recording.exchange import Exchange, Headers, Recording
from testbed.pages.recording.parentage import Parentage, find_parents
from testbed.pages.synthesis.har import body_name
from testbed.pages.table.resources import REDIRECTS

CREATOR = {"name": "firstflight", "version": "1"}
_VERSIONS = {"http/1.1": "HTTP/1.1", "h2": "h2"}
# The sum of one day and this stays a date that every tool takes.
_LONGEST_MS = 1e9


@dataclass(frozen=True, slots=True)
class RecordedHar:
    """The HAR document, and its notes: the recording's and those of what changed on the way."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def make_recorded_har(name: str, recording: Recording) -> RecordedHar:
    """The HAR of ``recording`` as the page ``name``; times count from midnight UTC.

    Heads of HTTP/1.1 responses are brought to a size that the server can make.

    Raises:
        ValueError: the recording is not whole: no exchanges, a body is missing or of another
            size than its exchange says, a URL or a time is none.
    """
    _check(recording)
    exchanges, head_notes = _reachable_heads(recording.exchanges)
    parentage = find_parents(exchanges)
    notes = (*recording.notes, *head_notes, *parentage.notes)
    page: dict[str, Any] = {
        "startedDateTime": _moment(recording.recorded, 0),
        "id": name,
        "title": recording.title,
        "pageTimings": {} if recording.load_ms is None else {"onLoad": _rounded(recording.load_ms)},
        "_pinned": recording.pinned,
        "_notes": list(notes),
    }
    entries = [
        _entry(name, recording.recorded, index, exchanges, parentage)
        for index in range(len(exchanges))
    ]
    log = {"version": "1.2", "creator": dict(CREATOR), "pages": [page], "entries": entries}
    return RecordedHar({"log": log}, notes)


def _check(recording: Recording) -> None:
    exchanges = recording.exchanges
    if not exchanges or exchanges[0].url != recording.url:
        raise ValueError(f"{recording.url}: the first exchange is not the page's own")
    for index, exchange in enumerate(exchanges):
        split_url(exchange.url)  # raises what is wrong
        if exchange.body is None:
            raise ValueError(f"{exchange.url}: the body is missing; it has to be synthesised first")
        if len(exchange.body) != exchange.body_size:
            raise ValueError(
                f"{exchange.url}: a body of {len(exchange.body)} bytes, said {exchange.body_size}"
            )
        if (exchange.how == "root") != (index == 0):
            raise ValueError(f"{exchange.url}: the first exchange, and only it, is the root")
        for time in (exchange.start_ms, exchange.dur_ms, recording.load_ms):
            if time is not None and not abs(time) < _LONGEST_MS:
                raise ValueError(f"{exchange.url}: {time} ms is no time")


def _reachable_heads(
    exchanges: tuple[Exchange, ...],
) -> tuple[tuple[Exchange, ...], tuple[str, ...]]:
    """The exchanges with heads that the server can make, and what that changed."""
    sized, grown, unknown = [], [], []
    for exchange in exchanges:
        size = None if exchange.protocol == "h2" else exchange.headers_size
        if size is not None and exchange.status not in REASONS:
            unknown.append(exchange.status)
            size = None
        if size is not None:
            headers = tuple(
                pair for pair in exchange.headers if pair[0].lower() not in NOT_REPLAYED
            )
            natural = natural_size(exchange.status, exchange.body_size, headers)
            reachable = reachable_size(size, natural)
            if reachable != size:
                grown.append(reachable - size)
            size = reachable
        sized.append(replace(exchange, headers_size=size))
    notes = []
    if grown:
        notes.append(
            f"{_count(len(grown), 'response head grows', 'response heads grow')} by {sum(grown)} "
            "bytes in all: nginx's own lines are longer, and padding has a least size."
        )
    if unknown:
        statuses = ", ".join(str(status) for status in sorted(set(unknown)))
        notes.append(
            f"{_count(len(unknown), 'response', 'responses')} with a status whose head nginx "
            f"sizes in its own way ({statuses}): the size of the head is not kept."
        )
    return tuple(sized), tuple(notes)


def _entry(
    name: str, recorded: date, index: int, exchanges: tuple[Exchange, ...], parentage: Parentage
) -> dict[str, Any]:
    exchange = exchanges[index]
    parent = parentage.parents[index]
    origin = None if parent is None else exchanges[parent]
    duration = max(_rounded(exchange.dur_ms) or 0.0, 0.0)
    return {
        "pageref": name,
        "startedDateTime": _moment(recorded, exchange.start_ms or 0),
        "time": duration,
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": duration, "receive": 0},
        "_id": str(index),
        "_body": body_name(exchange.body or b""),
        "_parent": None if origin is None else origin.url,
        "_carrier": None if origin is None else origin.url,
        "_how": exchange.how,
        "_gap_ms": _gap_ms(origin, exchange),
        "_start_ms": _rounded(exchange.start_ms),
        "_dur_ms": _rounded(exchange.dur_ms),
        "_depth": parentage.depths[index],
        "_after_load": exchange.after_load,
    }


def _request(exchange: Exchange) -> dict[str, Any]:
    query = parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True)
    return {
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": _VERSIONS[exchange.protocol],
        "cookies": [],
        "headers": _pairs(exchange.request_headers),
        "queryString": _pairs(tuple(query)),
        "headersSize": -1,
        "bodySize": exchange.request_body_size,
    }


def _response(exchange: Exchange) -> dict[str, Any]:
    content: dict[str, Any] = {"size": -1, "mimeType": exchange.mime}
    if exchange.decoded_size is not None:
        content |= {
            "size": exchange.decoded_size,
            "compression": exchange.decoded_size - exchange.body_size,
        }
    head = -1 if exchange.headers_size is None else exchange.headers_size
    return {
        "status": exchange.status,
        "statusText": "" if exchange.protocol == "h2" else _reason(exchange.status),
        "httpVersion": _VERSIONS[exchange.protocol],
        "cookies": [],
        "headers": _pairs(exchange.headers),
        "content": content,
        "redirectURL": redirect_target(exchange.url, exchange.status, exchange.headers) or "",
        "headersSize": head,
        "bodySize": exchange.body_size,
        "_transferSize": max(head, 0) + exchange.body_size,
    }


def redirect_target(url: str, status: int, headers: Headers) -> str | None:
    """The absolute URL that a response sends the browser to (RFC 9110 section 10.2.2)."""
    values = [value for name, value in headers if name.lower() == "location"]
    if status not in REDIRECTS or not values:
        return None
    try:
        return urldefrag(urljoin(url, values[0])).url
    except ValueError:  # a host in broken brackets
        return values[0]


def _gap_ms(parent: Exchange | None, child: Exchange) -> float | None:
    if parent is None or parent.start_ms is None or parent.dur_ms is None or child.start_ms is None:
        return None
    return _rounded(child.start_ms - parent.start_ms - parent.dur_ms)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _moment(recorded: date, ms: float) -> str:
    start = datetime(recorded.year, recorded.month, recorded.day, tzinfo=UTC)
    moment = start + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rounded(ms: float | None) -> float | None:
    """Whole microseconds: no clock of a recording is finer."""
    return None if ms is None else round(ms, 3)


def _pairs(pairs: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
