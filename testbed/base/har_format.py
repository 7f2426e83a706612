"""HAR 1.2 format: the parts that every writer of such a file makes alike, and their order in it.

A writer's own fields begin with ``_`` and follow these.  Guests import this module.
Source: http://www.softwareishard.com/blog/har-12-spec/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

UNKNOWN = -1
"""What HAR has for a size or a time that nobody observed."""
CREATOR = "firstflight"
PAGE_ID = "page_1"

Part = dict[str, Any]
Pairs = Iterable[tuple[str, str]]


def log(
    creator: str, page_part: Part, entries: Sequence[Part], browser: tuple[str, str] | None = None
) -> Part:
    """Return the whole file of one page; ``browser`` is name and version of what loaded it."""
    whole: Part = {"version": "1.2", "creator": {"name": creator, "version": "1"}}
    if browser is not None:
        whole["browser"] = {"name": browser[0], "version": browser[1]}
    return {"log": whole | {"pages": [page_part], "entries": entries}}


def page(number: str, title: str, started: str, timings: Mapping[str, float | None]) -> Part:
    """Return a page, which started at the moment ``started``."""
    return {
        "startedDateTime": started,
        "id": number,
        "title": title,
        "pageTimings": dict(timings),
    }


def entry(
    page_id: str, started: str, time_ms: float, request: Part, response: Part, timings: Part
) -> Part:
    """Return a request with its response."""
    return {
        "pageref": page_id,
        "startedDateTime": started,
        "time": time_ms,
        "request": request,
        "response": response,
        "cache": {},
        "timings": timings,
    }


def request(method: str, url: str, protocol: str, headers: Pairs, sizes: tuple[int, int]) -> Part:
    """Return a request, with its query as the URL has it; ``sizes`` are bytes of head and body."""
    return {
        "method": method,
        "url": url,
        "httpVersion": protocol,
        "cookies": [],
        "headers": pairs(headers),
        "queryString": query(url),
        "headersSize": sizes[0],
        "bodySize": sizes[1],
    }


def response(
    status: int, reason: str, protocol: str, headers: Pairs, content: Part, redirect: str,
    sizes: tuple[int, int, int | None],
) -> Part:  # fmt: skip
    """Return a response; ``sizes`` are bytes of head, body, and both as transferred."""
    return {
        "status": status,
        "statusText": reason,
        "httpVersion": protocol,
        "cookies": [],
        "headers": pairs(headers),
        "content": content,
        "redirectURL": redirect,
        "headersSize": sizes[0],
        "bodySize": sizes[1],
        "_transferSize": sizes[2],
    }


def query(url: str) -> list[Part]:
    """Return the query of ``url``, empty values as well."""
    return pairs(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def pairs(values: Pairs) -> list[Part]:
    """Return names with their values, as headers and queries have them."""
    return [{"name": name, "value": value} for name, value in values]
