"""One row of a resource table, and what its numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

PROTOCOLS = ("http", "https", "h2")
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ERRORS = frozenset({403, 404, 410, 500, 503})
STATUSES = frozenset({200, 204}) | REDIRECTS | ERRORS
DOCUMENT_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HEADER_BYTES = 480
MIN_HEADER_BYTES = 330


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded exchange; a number that was not recorded is ``None``, as is an unknown type.

    ``transfer_bytes`` counts response head and body, ``body_bytes`` the decoded body,
    ``head_bytes`` the head; ``None`` stands for a head of ``HEADER_BYTES``.
    """

    id: str
    parent: str | None
    host: str
    mime: str
    status: int
    transfer_bytes: int
    body_bytes: int | None
    how: str
    gap_ms: float | None
    start_ms: float | None
    dur_ms: float | None
    protocol: str = "http"
    head_bytes: int | None = None

    @property
    def scheme(self) -> str:
        """Of the row's URL: ``http`` or ``https``."""
        return "http" if self.protocol == "http" else "https"

    @property
    def head_size(self) -> int:
        """Bytes of the response head, as far as no reference takes any of them."""
        return min(self.head_bytes or HEADER_BYTES, self.transfer_bytes)
