"""Small archives, and a client that counts the bytes of every response."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.page.archive import Archive, Entry

HOST = "www.page.test"
OTHER_HOST = "img.page.test"


def make_entry(
    path: str = "/", body: bytes = b"", folder: Path | None = None, **more: Any
) -> Entry:
    """An entry for ``path``; a body that is not empty is written to ``folder``."""
    file = None
    if body and folder is not None:
        file = folder / hashlib.sha256(body).hexdigest()
        file.write_bytes(body)
    host = more.get("host", HOST)
    values: dict[str, Any] = {
        "id": path,
        "url": f"http://{host}{path}",
        "host": host,
        "path": path,
        "method": "GET",
        "status": 200,
        "headers": (("Content-Type", "text/html"),),
        "headers_size": 300,
        "body_size": len(body),
        "decoded_size": len(body),
        "mime": "text/html",
        "body": file,
        "location": None,
        "parent": None,
        "carrier": None,
        "how": "root",
        "gap_ms": None,
        "start_ms": None,
        "dur_ms": None,
        "depth": 0,
    }
    return Entry(**(values | more))


def make_archive(*entries: Entry) -> Archive:
    """An archive of ``entries``."""
    return Archive("small", "A small page", entries[0].url, entries, "0" * 64)


@dataclass(frozen=True)
class Response:
    """One response as it came over the wire: head up to the blank line, and body."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode().split("\r\n")[1:-2]
        return dict(line.split(": ", 1) for line in lines)


class Connection:
    """A kept connection to one origin."""

    def __init__(self, address: str, host: str = HOST) -> None:
        self._socket = socket.create_connection((address, 80), timeout=10)
        self._host = host
        self._rest = b""

    def get(self, path: str) -> Response:
        """Ask for ``path`` and read exactly one response."""
        request = f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n"
        self._socket.sendall(request.encode())
        while b"\r\n\r\n" not in self._rest:
            self._receive()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        response = Response(head + b"\r\n\r\n", b"")
        size = int(response.headers.get("Content-Length", "0"))
        while len(self._rest) < size:
            self._receive()
        body, self._rest = self._rest[:size], self._rest[size:]
        return Response(response.head, body)

    def closed(self) -> bool:
        """Whether the server has closed; fails when it says something instead."""
        assert self._rest == b""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        assert data, "the server closed in the middle of a response"
        self._rest += data
