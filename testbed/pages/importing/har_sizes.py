"""The transferred size of a body in a HAR: each producer means something else by its numbers.

DevTools: ``bodySize`` is -1 over HTTP/2 and 0 from the cache, ``_transferSize`` has the head.
Firefox: ``bodySize`` has the head.  chrome-har: ``bodySize`` has the head over HTTP/2, and
everywhere in its first versions.  WebPageTest: ``_objectSize`` is the body, ``_bytesIn`` all.
mitmproxy: ``headersSize`` is the length of what Python shows of the headers.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.pages.importing.claim import find_header
from testbed.pages.importing.values import Fields
from testbed.pages.recording.exchange import Headers


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a body as transferred (``None``: unknown), and whether they were counted."""

    body: int | None
    is_exact: bool


def measure(
    entry: Fields, response: Fields, headers: Headers, *, producer: str, cached: bool
) -> Size:
    """The best that the entry says; ``cached``: its counters are of another load, or 0."""
    length = _content_length(headers)
    if cached:
        return Size(length, True)
    object_size = entry.size("_objectSize")
    if object_size:
        return Size(object_size, True)
    head = response.size("headersSize") or 0
    total = response.size("_transferSize") or entry.size("_bytesIn") or 0
    body = response.size("bodySize")
    if producer == "firefox" and body and body >= head:
        total, body = body, None
    most = max(total, body or 0)
    if length is not None and (length <= most or not most):
        return Size(length, True)
    if body and not (total and body >= total):
        return Size(body, True)
    if total or body:
        return Size(max((total or body or 0) - head, 0), False)
    # Nothing was transferred, or it was not counted; the decoded size tells which.
    return Size(0 if response.fields("content").size("size") == 0 else None, True)


def measure_head(response: Fields, headers: Headers, producer: str) -> int | None:
    """Bytes of the response head in HTTP/1.1 form; ``None`` when unknown."""
    if producer != "mitmproxy":
        return response.size("headersSize") or None
    status = int(response.number("status") or 0)
    line = f"{response.text('httpVersion')} {status} {response.text('statusText')}"
    return len(line) + 4 + sum(len(name) + len(value) + 4 for name, value in headers)


def _content_length(headers: Headers) -> int | None:
    value = find_header(headers, "content-length").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None
