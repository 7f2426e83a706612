"""HAR 1.2 of a synthesised page; ``archive`` reads it back."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from typing import Any

from testbed.pages.synthesis.bodies import Exchange, Synthesis

_REASONS = {
    200: "OK",
    204: "No Content",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    403: "Forbidden",
    404: "Not Found",
    410: "Gone",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_VERSIONS = {"http": "HTTP/1.1", "https": "HTTP/1.1", "h2": "h2"}
_HOW = {
    "root": "root",
    "redirect": "redirect",
    "document": "parser",
    "style": "css",
    "script": "script",
}


def body_name(data: bytes) -> str | None:
    """Where an archive keeps a body; ``None`` for an empty one."""
    return f"bodies/{hashlib.sha256(data).hexdigest()}" if data else None


def make_har(name: str, title: str, recorded: date, page: Synthesis) -> dict[str, Any]:
    """The HAR document of a page; times are the recorded ones, counted from midnight UTC."""
    start = datetime(recorded.year, recorded.month, recorded.day, tzinfo=UTC)
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "testbed.page", "version": "1"},
            "pages": [
                {
                    "startedDateTime": _time(start, 0),
                    "id": name,
                    "title": title,
                    "pageTimings": {},
                }
            ],
            "entries": [_entry(name, start, page, exchange) for exchange in page.exchanges],
        }
    }


def _time(start: datetime, ms: float) -> str:
    moment = start + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _entry(name: str, start: datetime, page: Synthesis, exchange: Exchange) -> dict[str, Any]:
    row, found = exchange.row, page.discovery
    parent = found.by_id[row.parent] if row.parent is not None else None
    duration = 0.0 if row.dur_ms is None else row.dur_ms
    return {
        "pageref": name,
        "startedDateTime": _time(start, row.start_ms or 0),
        "time": duration,
        "request": {
            "method": "GET",
            "url": found.url(row),
            "httpVersion": _VERSIONS[row.protocol],
            "headers": [],
            "queryString": [],
            "cookies": [],
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": _response(page, exchange),
        "cache": {},
        "timings": {"send": 0, "wait": duration, "receive": 0},
        "_id": row.id,
        "_body": body_name(exchange.body.data),
        "_parent": None if parent is None else found.url(parent),
        "_carrier": found.carrier_url(row),
        "_how": _how(page, exchange),
        "_recorded_how": row.how,
        "_recorded_host": row.host,
        "_gap_ms": row.gap_ms,
        "_start_ms": row.start_ms,
        "_dur_ms": row.dur_ms,
        "_depth": found.depth(row),
        "_after_load": False,
    }


def _response(page: Synthesis, exchange: Exchange) -> dict[str, Any]:
    row, body = exchange.row, exchange.body
    location = _location(page, exchange)
    headers = [
        ("Content-Type", row.mime),
        ("Content-Encoding", "gzip" if body.gzipped else ""),
        ("Location", location),
        # JSON is fetched in CORS mode, which needs leave.
        ("Access-Control-Allow-Origin", "*" if page.discovery.role(row) == "data" else ""),
    ]
    return {
        "status": row.status,
        "statusText": "" if row.protocol == "h2" else _REASONS[row.status],
        "httpVersion": _VERSIONS[row.protocol],
        "headers": [{"name": key, "value": value} for key, value in headers if value],
        "cookies": [],
        "content": {
            "size": body.decoded_size,
            "compression": body.decoded_size - len(body.data),
            "mimeType": row.mime,
        },
        "redirectURL": location,
        "headersSize": -1 if exchange.headers_size is None else exchange.headers_size,
        "bodySize": len(body.data),
        "_transferSize": row.transfer_bytes,
    }


def _location(page: Synthesis, exchange: Exchange) -> str:
    target = page.discovery.redirect_target(exchange.row)
    return "" if target is None else page.discovery.url(target)


def _how(page: Synthesis, exchange: Exchange) -> str:
    row, found = exchange.row, page.discovery
    if row.how in ("root", "redirect"):
        return row.how
    reference = found.find(row)
    if reference.after is not None:
        return "script"
    if found.role(row) == "document" and found.role(found.by_id[reference.carrier]) == "document":
        return "frame"
    return _HOW[found.role(found.by_id[reference.carrier])]
