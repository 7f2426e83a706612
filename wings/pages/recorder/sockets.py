"""Transfers of the browser's network stack, completed from the bytes that each socket received.

The browser reads no redirect's body for anybody, it only drains it from the connection; and it
tidies response heads up before it logs them.  HTTP/1.1 only (RFC 9112 sections 2 and 7.1).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from wings.pages.coding import undo_chunks
from wings.pages.exchange import Headers, HttpProtocol, find_header

_NO_BODY = frozenset({204, 205, 304})
MOST_HEAD_BYTES = 1 << 18
MOST_REDIRECT_BYTES = 1 << 20
_BLANK = b"\r\n\r\n"


@dataclass(slots=True)
class NetTransfer:
    """One request that the network stack worked on; a redirect is followed by another one.

    ``start_s`` and ``ended_s`` are the browser's monotonic clock.  ``position`` is the place in the
    order of sending, ``None`` when the request never left the browser.  ``head`` is the response
    head as received (HTTP/1.1 only).  ``body`` is as transferred, ``None`` when it was not seen or
    is beyond the reader's bound; ``received_bytes`` counts it in any case.
    ``decoded_size`` is what the browser decoded, ``None`` without a response.  ``error`` is a net
    error number, 0 for none.  ``head_s`` is when the head came, and ``reads`` are when so many
    bytes of the body did.
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
    head_s: float | None = None
    reads: list[tuple[float, int]] = field(default_factory=list)

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
        """Return the first value of a response header, or nothing."""
        return find_header(self.headers, name)


def plain_url(url: str) -> str:
    """Return ``url`` without fragment and user information."""
    scheme, _, rest = url.partition("#")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


@dataclass(slots=True)
class _Stream:
    """What a socket receives from one request to the next."""

    data: bytearray = field(default_factory=bytearray)
    head: bytes | None = None
    done: bool = False

    def add(self, piece: bytes) -> None:
        if self.done:
            return
        self.data += piece
        while self.head is None and (end := self.data.find(_BLANK)) >= 0:
            head = bytes(self.data[: end + len(_BLANK)])
            del self.data[: end + len(_BLANK)]
            if not head.split(b" ", 2)[1].startswith(b"1"):  # 1xx is not the response yet
                self.head = head
        redirect = self.head is not None and self.head.split(b" ", 2)[1].startswith(b"3")
        most = MOST_REDIRECT_BYTES if redirect else MOST_HEAD_BYTES
        if len(self.data) > most or (self.head is not None and not redirect):
            self.done = True
            self.data.clear()


class Sockets:
    """Which socket serves which request, and what it received for it."""

    def __init__(self) -> None:
        self._job_of: dict[int, int] = {}
        self._socket_of: dict[int, int] = {}
        self._encrypted: set[int] = set()
        self._streams: dict[int, _Stream] = {}
        self._stream_of: dict[int, _Stream] = {}
        self._claimed: list[tuple[_Stream, NetTransfer]] = []

    def take(self, name: str, source: int, params: dict[str, Any]) -> None:
        """Take an event of any source."""
        if name == "HTTP_STREAM_REQUEST_BOUND_TO_JOB":
            self._job_of[source] = params["source_dependency"]["id"]
        elif name == "SOCKET_POOL_BOUND_TO_SOCKET":
            self._socket_of[source] = params["source_dependency"]["id"]
        elif name == "SSL_CONNECT":
            self._encrypted.add(source)
        elif name in ("SOCKET_BYTES_RECEIVED", "SSL_SOCKET_BYTES_RECEIVED"):
            stream = self._streams.get(source)
            plain = source not in self._encrypted
            if stream and not stream.done and plain == (name == "SOCKET_BYTES_RECEIVED"):
                stream.add(base64.b64decode(params.get("bytes", "")))

    def begin(self, request: int) -> None:
        """Note that the request with this source is sent over its socket now, over HTTP/1.1."""
        self._stream_of.pop(request, None)
        socket = self._socket_of.get(self._job_of.get(request, -1))
        if socket is not None:
            self._streams[socket] = self._stream_of[request] = _Stream()

    def claim(self, request: int, answered: NetTransfer) -> None:
        """End the request with this source, which led to ``answered``."""
        stream = self._stream_of.pop(request, None)
        if stream is not None:
            self._claimed.append((stream, answered))

    def close(self) -> None:
        """Complete what was claimed."""
        for stream, answered in self._claimed:
            answered.head = stream.head
            if answered.redirected and stream.head is not None and not stream.done:
                answered.body, answered.received_bytes = read_body(stream.head, bytes(stream.data))


def read_body(head: bytes, data: bytes) -> tuple[bytes | None, int]:
    """Return the body that follows ``head`` in ``data``, without transfer coding, and its size.

    ``None`` when it is not whole; its size is then the declared one, or that of what was received.
    """
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip().lower()
    if fields.get(b"transfer-encoding", b"").endswith(b"chunked"):
        return undo_chunks(data)
    declared = fields.get(b"content-length", b"")
    if not declared.isdigit():
        return data, len(data)
    size = int(declared)
    return (data[:size] if len(data) >= size else None), size
