"""What a load asked for and got beside what the page holds: missing, extra, failed, altered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from testbed.client.protocol import Page, Resource
from testbed.model import RequestTiming

T = TypeVar("T")
FIRST_ERROR_STATUS = 400
NOT_MODIFIED = 304
# Ends with what was recorded of it, and the browser connects again (HTML, section 9.2.3).
EVENT_STREAM = "text/event-stream"
BODILESS = (204, 304)
"""Statuses whose responses have no body (RFC 9110 sections 15.3.5 and 15.4.5)."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """URLs in the page's order (missing) and in the load's order (extra, failed).

    A URL stands in ``missing`` or ``extra`` as often as it was asked too seldom or too often.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    failed: tuple[str, ...]


def compare(page: Page, requests: Sequence[RequestTiming]) -> Coverage:
    """Compare ``requests`` with the page; status 0 means that no response came to its end.

    What is not due may be asked for but need not be, and an event stream again each time that it
    ends.  An error status counts as failed unless the page was recorded with it.
    """
    due = list_due(page)
    recorded = [entry.url for entry in page.entries]
    streams = {entry.url for entry in page.entries if entry.mime == EVENT_STREAM}
    asked = [without_fragment(request.url) for request in requests]
    expected_errors = {(e.url, e.status) for e in page.entries if e.status >= FIRST_ERROR_STATUS}
    failed = tuple(
        url
        for url, request in zip(asked, requests, strict=True)
        if request.status == 0
        or (request.status >= FIRST_ERROR_STATUS and (url, request.status) not in expected_errors)
    )
    extra = _surplus(asked, recorded)
    return Coverage(_surplus(due, asked), tuple(url for url in extra if url not in streams), failed)


def list_due(page: Page) -> list[str]:
    """URLs that a load is to ask for, each as often as recorded and in recorded order.

    Not due are what was recorded after the load event, and revalidations (RFC 9111 section 4.3):
    they are the business of a client's cache, and not every client has one.
    """
    return [e.url for e in page.entries if not e.after_load and e.status != NOT_MODIFIED]


def list_altered(
    page: Page, bodies: Iterable[tuple[str, T]], recorded: Callable[[Resource], T]
) -> tuple[str, ...]:
    """URLs among ``bodies`` whose body is not one that the page holds for them, in their order.

    A body stands for itself by its length or its digest, and ``recorded`` gives the same of a
    resource whose response has a body.  What the page does not hold is not looked at.
    """
    due: dict[str, set[T]] = {}
    for entry in page.entries:
        due.setdefault(entry.url, set()).add(recorded(entry))
    asked = ((without_fragment(url), body) for url, body in bodies)
    return tuple(url for url, body in asked if url in due and body not in due[url])


def without_fragment(url: str) -> str:
    """The URL as it goes to a server."""
    return url.partition("#")[0]


def _surplus(these: Iterable[str], those: Iterable[str]) -> tuple[str, ...]:
    unmatched = Counter(those)
    surplus = []
    for url in these:
        if unmatched[url]:
            unmatched[url] -= 1
        else:
            surplus.append(url)
    return tuple(surplus)
