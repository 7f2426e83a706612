"""Parser of one HTTP/1.1 response, from the pieces that arrive (RFC 9112)."""

from __future__ import annotations

from hashlib import sha256

MAX_HEADER_BYTES = 256 * 1024
NO_BODY = (204, 304)


class ProtocolError(Exception):
    """The server's bytes are not an HTTP/1.1 response."""


class HttpResponse:
    """One response, as far as it has arrived.

    ``header_bytes`` and ``body_bytes`` count bytes on the wire, chunk framing included;
    ``digest`` is that of the same body.
    """

    __slots__ = (
        "_buffer",
        "_chunked",
        "_head_request",
        "_left",
        "body_bytes",
        "digest",
        "done",
        "header_bytes",
        "headers",
        "keep_alive",
        "length",
        "reason",
        "status",
    )

    def __init__(self, method: str = "GET") -> None:
        self._buffer = b""
        self._chunked = False
        self._head_request = method == "HEAD"
        self._left = 0  # body bytes to come; with chunks, those of the present chunk
        self.status = 0
        self.reason = ""
        self.headers: list[tuple[str, str]] = []
        self.header_bytes = 0
        self.body_bytes = 0
        self.digest = sha256()
        self.length: int | None = None  # body bytes announced; None: until close, or chunked
        self.keep_alive = False
        self.done = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            ProtocolError: they do not continue a response, or go beyond its end.
        """
        if not self.status:
            self._buffer += data
            if not self._read_head():
                return
            data, self._buffer = self._buffer, b""
        if self._chunked:
            self._read_chunks(data)
        else:
            self._read_plain(data)

    def end(self) -> None:
        """End the response: the server closed the connection.

        Raises:
            ProtocolError: the response is not complete.
        """
        if self.done:
            return
        if self.status and not self._chunked and self.length is None:
            self.done = True
            return
        raise ProtocolError("the server closed the connection inside a response")

    def header(self, name: str) -> str | None:
        """Return the last value of header ``name`` (lower case)."""
        return next((v for n, v in reversed(self.headers) if n.lower() == name), None)

    def _read_head(self) -> bool:
        """Read the status line and headers; skip interim responses (1xx)."""
        while True:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                if len(self._buffer) > MAX_HEADER_BYTES:
                    raise ProtocolError(f"a response header beyond {MAX_HEADER_BYTES} bytes")
                return False
            lines = head.decode("latin-1").split("\r\n")
            status = _read_status(lines[0])
            self.header_bytes += len(head) + len(mark)
            self._buffer = rest
            if status >= 200:
                break
        self.status = status
        self.reason = lines[0][13:]
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError(f"not a header: {line!r}")
            self.headers.append((name, value.strip()))
        self._read_framing(lines[0])
        return True

    def _read_framing(self, status_line: str) -> None:
        connection = (self.header("connection") or "").lower()
        self.keep_alive = "close" not in connection and status_line.startswith("HTTP/1.1")
        length = self.header("content-length")
        if self.status in NO_BODY or self._head_request:
            self.length, self.done = 0, True
        elif "chunked" in (self.header("transfer-encoding") or "").lower():
            self._chunked = True
        elif length is not None:
            if not length.isascii() or not length.isdigit():
                raise ProtocolError(f"Content-Length: {length}")
            self.length = self._left = int(length)
            self.done = self.length == 0
        else:
            self.keep_alive = False

    def _read_plain(self, data: bytes) -> None:
        if self.length is not None:
            if len(data) > self._left:
                raise ProtocolError("bytes beyond the end of a response")
            self._left -= len(data)
            self.done = self._left == 0
        self.body_bytes += len(data)
        self.digest.update(data)

    def _read_chunks(self, data: bytes) -> None:
        self.body_bytes += len(data)
        self.digest.update(data)
        self._buffer += data
        while not self.done:
            if self._left:
                # The rest of the chunk and the line end after it.
                skipped = min(self._left, len(self._buffer))
                self._left -= skipped
                self._buffer = self._buffer[skipped:]
                if self._left:
                    return
            line, mark, rest = self._buffer.partition(b"\r\n")
            if not mark:
                return
            size = _read_chunk_size(line)
            if size == 0:
                # Trailers end with an empty line.
                if rest.startswith(b"\r\n") or b"\r\n\r\n" in rest:
                    self.done = True
                return
            self._buffer = rest
            self._left = size + 2


def _read_status(line: str) -> int:
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise ProtocolError(f"not a status line: {line!r}")
    return int(rest[:3])


def _read_chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise ProtocolError(f"not a chunk size: {line!r}") from None
