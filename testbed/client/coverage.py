"""What a load asked for beside what the page holds: missing, extra and failed requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.client.protocol import Page
from testbed.model import RequestTiming

FIRST_ERROR_STATUS = 400


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

    What was recorded after the load event may be asked for but need not be.  An error status
    counts as failed unless the page was recorded with it.
    """
    due = [entry.url for entry in page.entries if not entry.after_load]
    recorded = [*due, *(entry.url for entry in page.entries if entry.after_load)]
    asked = [without_fragment(request.url) for request in requests]
    expected_errors = {(e.url, e.status) for e in page.entries if e.status >= FIRST_ERROR_STATUS}
    failed = tuple(
        url
        for url, request in zip(asked, requests, strict=True)
        if request.status == 0
        or (request.status >= FIRST_ERROR_STATUS and (url, request.status) not in expected_errors)
    )
    return Coverage(_surplus(due, asked), _surplus(asked, recorded), failed)


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
