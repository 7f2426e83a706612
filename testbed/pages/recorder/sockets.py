"""Response heads and the bodies of redirects, from the bytes that each socket received.

The browser reads no redirect's body for anybody, it only drains it from the connection; and it
tidies response heads up before it tells them.  HTTP/1.1 only (RFC 9112 sections 2 and 7.1).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Protocol

MOST_HEAD_BYTES = 1 << 18
MOST_REDIRECT_BYTES = 1 << 20
_BLANK = b"\r\n\r\n"


class Answered(Protocol):
    """What is known of a response, and completed here (see ``netlog.Transfer``)."""

    head: bytes | None
    body: bytes | None
    received_bytes: int
    redirected: bool


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
        self._claimed: list[tuple[_Stream, Answered]] = []

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
        """The request with this source is sent over its socket now, over HTTP/1.1."""
        self._stream_of.pop(request, None)
        socket = self._socket_of.get(self._job_of.get(request, -1))
        if socket is not None:
            self._streams[socket] = self._stream_of[request] = _Stream()

    def claim(self, request: int, answered: Answered) -> None:
        """``answered`` is what the request with this source led to; it ends here."""
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
    """The body that follows ``head`` in ``data``, without transfer coding, and its size.

    ``None`` when it is not whole; its size is then the declared one, or what there is.
    """
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip().lower()
    if fields.get(b"transfer-encoding", b"").endswith(b"chunked"):
        return _undo_chunks(data)
    declared = fields.get(b"content-length", b"")
    if not declared.isdigit():
        return data, len(data)
    size = int(declared)
    return (data[:size] if len(data) >= size else None), size


def _undo_chunks(data: bytes) -> tuple[bytes | None, int]:
    pieces: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        try:
            size = int(data[at:end].split(b";")[0], 16)
        except ValueError:
            break
        at = end + 2
        if size == 0:
            return b"".join(pieces), sum(len(piece) for piece in pieces)
        pieces.append(data[at : at + size])
        at += size + 2
    return None, sum(len(piece) for piece in pieces)
