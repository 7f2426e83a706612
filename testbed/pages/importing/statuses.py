"""Methods, statuses and protocols that nobody vouches for, as the lab can replay them."""

from __future__ import annotations

from testbed.archive.head import REASONS
from testbed.pages.recording.exchange import HttpProtocol

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_H2 = ("h2", "h3", "http/2", "http/3", "http2", "http3", "quic", "spdy")


def replayed_status(status: int) -> int | None:
    """The status that is sent for ``status``; ``None`` if there was no whole response."""
    if status == 304:  # what the browser had is what a first load fetches
        return 200
    return status if status in REASONS and status < 600 else None


def status_problem(status: int) -> str:
    """Why a status cannot be replayed, as a kind of requests."""
    if status <= 0:
        return "without a response"
    return "switched to another protocol" if status == 101 else "statuses that are none"


def replayed_protocol(text: str, scheme: str) -> HttpProtocol:
    """``h2`` for HTTP/2 and HTTP/3; over plain HTTP no browser speaks either."""
    return "h2" if scheme == "https" and text.strip().lower().startswith(_H2) else "http/1.1"
