"""What led to a request, from the fields that each producer has for it."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.pages.importing.claim import find_header
from testbed.pages.importing.values import Fields
from testbed.pages.recording.exchange import Headers

_DEPTH = 20


def find_initiator(entry: Fields, request_headers: Headers) -> tuple[str | None, str]:
    """URL of the initiator (``None``: unknown) and its kind: ``parser``, ``script`` or nothing.

    DevTools writes an object, chrome-har and WebPageTest a URL and ``_initiator_type``; Firefox
    nothing, so that the ``Referer`` has to do.
    """
    if isinstance(entry.raw("_initiator"), dict):
        initiator = entry.fields("_initiator")
        kind = _kind(initiator.text("type"))
        url = initiator.text("url") or next(_frames(initiator.fields("stack")), "")
    else:
        url = entry.text("_initiator")
        kind = _kind(entry.text("_initiator_type"))
    referer = find_header(request_headers, "referer")
    return url or referer or None, kind


def _kind(text: str) -> str:
    kind = text.strip().lower()
    return kind if kind in ("parser", "script") else ""


def _frames(stack: Fields) -> Iterator[str]:
    """URLs of the frames of a call stack, the innermost first, across asynchronous calls."""
    for _ in range(_DEPTH):
        for frame in stack.members("callFrames"):
            if url := frame.text("url"):
                yield url
        if not stack.has("parent"):
            return
        stack = stack.fields("parent")
