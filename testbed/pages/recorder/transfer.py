"""One request as the browser's network stack saw it."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.pages.recording.exchange import Headers, HttpProtocol

_NO_BODY = frozenset({204, 205, 304})


@dataclass(slots=True)
class Transfer:
    """One request that the network stack worked on; a redirect is followed by another one.

    ``start_s`` and ``ended_s`` are the browser's monotonic clock.  ``position`` is the place in the
    order of sending, ``None`` when the request never left the browser.  ``head`` is the response
    head as received (HTTP/1.1 only).  ``body`` is as transferred, ``None`` when it was not seen or
    is beyond the reader's bound; ``received_bytes`` counts it in any case.
    ``decoded_size`` is what the browser decoded, ``None`` without a response.  ``error`` is a net
    error number, 0 for none.
    """

    method: str
    url: str
    start_s: float
    position: int | None = None
    protocol: HttpProtocol = "http/1.1"
    request_headers: Headers = ()
    request_body_size: int = 0
    status: int | None = None
    headers: Headers = ()
    head: bytes | None = None
    body: bytes | None = b""
    received_bytes: int = 0
    decoded_size: int | None = None
    ended_s: float | None = None
    error: int = 0
    cancelled: bool = False
    redirected: bool = False

    @property
    def cut(self) -> bool:
        """Whether the response had not all arrived when the request ended."""
        if self.method == "HEAD" or self.status in _NO_BODY or self.redirected:
            return False
        if self.declared_bytes is not None:
            return self.received_bytes < self.declared_bytes
        return self.cancelled or self.error != 0 or self.ended_s is None

    @property
    def unread(self) -> bool:
        """Whether this is a redirect whose body the browser did not read to its end."""
        return self.redirected and self.received_bytes < (self.declared_bytes or 0)

    @property
    def declared_bytes(self) -> int | None:
        """The body's size by the response's head."""
        declared = self.header("content-length")
        return int(declared) if declared.isdigit() else None

    def header(self, name: str) -> str:
        """The first value of a response header, or nothing."""
        return next((v for key, v in self.headers if key.lower() == name), "")


def plain_url(url: str) -> str:
    """``url`` without fragment and user information."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
