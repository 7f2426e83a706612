"""HAR 1.2 of a load, for the clients that do not write one themselves.

Source: http://www.softwareishard.com/blog/har-12-spec/ ; -1 and empty lists mean what the
client did not observe.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from testbed.model import PageLoad, RequestTiming

UNKNOWN = -1
PAGE_ID = "page_1"
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ClientExchange:
    """One request and its response, as far as the client saw them (times in ms, sizes in bytes)."""

    timing: RequestTiming
    method: str = "GET"
    request_headers: Headers = ()
    request_header_bytes: int = UNKNOWN
    protocol: str = "HTTP/1.1"
    reason: str = ""
    response_headers: Headers = ()
    response_header_bytes: int = UNKNOWN
    body_bytes: int = UNKNOWN
    decoded_bytes: int = UNKNOWN
    mime: str = ""
    server: str = ""
    phases: dict[str, float] = field(default_factory=dict)


def write_har(
    path: Path, load: PageLoad, page_url: str, started: float, exchanges: Sequence[ClientExchange]
) -> None:
    """Write the load as HAR 1.2; ``started`` is its start in seconds since 1970 (UTC)."""
    log = {
        "version": "1.2",
        "creator": {"name": "firstflight", "version": "1"},
        "browser": {"name": load.client, "version": load.client_version},
        "pages": [
            {
                "startedDateTime": _timestamp(started, 0.0),
                "id": PAGE_ID,
                "title": page_url,
                "pageTimings": {"onContentLoad": UNKNOWN, "onLoad": load.plt_ms},
            }
        ],
        "entries": [_entry(exchange, started) for exchange in exchanges],
    }
    path.write_text(json.dumps({"log": log}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _entry(exchange: ClientExchange, started: float) -> dict[str, Any]:
    timing = exchange.timing
    phases = exchange.phases or {"wait": timing.end_ms - timing.start_ms}
    # The total is the sum of what is known: the specification asks for this.
    timings = {name: phases.get(name, UNKNOWN) for name in ("blocked", "dns", "connect")}
    timings |= {name: phases.get(name, 0.0) for name in ("send", "wait", "receive")}
    entry = {
        "pageref": PAGE_ID,
        "startedDateTime": _timestamp(started, timing.start_ms),
        "time": sum(value for value in timings.values() if value != UNKNOWN),
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": timings,
    }
    if exchange.server:
        entry["serverIPAddress"] = exchange.server
    if timing.connection:
        entry["connection"] = timing.connection
    if timing.initiator:
        entry["_initiator"] = timing.initiator
    return entry


def _request(exchange: ClientExchange) -> dict[str, Any]:
    query = parse_qsl(urlsplit(exchange.timing.url).query, keep_blank_values=True)
    return {
        "method": exchange.method,
        "url": exchange.timing.url,
        "httpVersion": exchange.protocol,
        "cookies": [],
        "headers": _pairs(exchange.request_headers),
        "queryString": _pairs(query),
        "headersSize": exchange.request_header_bytes,
        "bodySize": 0,
    }


def _response(exchange: ClientExchange) -> dict[str, Any]:
    location = [value for name, value in exchange.response_headers if name.lower() == "location"]
    return {
        "status": exchange.timing.status,
        "statusText": exchange.reason,
        "httpVersion": exchange.protocol,
        "cookies": [],
        "headers": _pairs(exchange.response_headers),
        "content": {"size": exchange.decoded_bytes, "mimeType": exchange.mime},
        "redirectURL": location[0] if location else "",
        "headersSize": exchange.response_header_bytes,
        "bodySize": exchange.body_bytes,
        "_transferSize": exchange.timing.transfer_bytes,
    }


def _pairs(values: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values]


def _timestamp(started: float, offset_ms: float) -> str:
    moment = datetime.fromtimestamp(started, UTC) + timedelta(milliseconds=offset_ms)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
