"""One TCP connection: open it (by Fast Open where asked), send a request, read its response.

Sources: tcp(7), TCP_FASTOPEN_CONNECT in Linux's net/ipv4/tcp.c.
"""

from __future__ import annotations

import errno
import os
import socket

from testbed.client.walk.response import Response

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from testbed.client.walk.fetch import Fetch

TCP_FASTOPEN_CONNECT = 30  # linux/tcp.h; Python's socket module has no name for it
RECEIVE_BYTES = 65536
# Bytes of a request header in all: the median of what Chrome sent to the recorded pages in 2013.
REQUEST_BYTES = 490
USER_AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.22 (KHTML, like Gecko) "
    "Chrome/25.0.1364.160 Safari/537.22"
)


class FastOpenRefusedError(Exception):
    """The kernel does not let this namespace open connections by Fast Open."""


class Connection:
    """A non-blocking socket, and the fetch that it carries at the moment."""

    __slots__ = ("_unsent", "connected", "fetch", "number", "response", "socket", "used")

    def __init__(self, address: tuple[str, int], number: int, fast_open: bool) -> None:
        """Start to connect.

        Raises:
            FastOpenRefusedError: see there.
            OSError: the connection failed at once.
        """
        self.number = number
        self.fetch: Fetch | None = None
        self.response: Response | None = None
        self.used = False
        self._unsent = b""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if fast_open:
                self._ask_fast_open()
            code = self.socket.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        except BaseException:
            self.socket.close()
            raise
        # With a cookie the kernel reports success at once and waits for the first write.
        self.connected = code == 0

    def _ask_fast_open(self) -> None:
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
        except OSError as error:
            raise FastOpenRefusedError(
                f"the kernel refused TCP_FASTOPEN_CONNECT ({error.strerror}); "
                "set bit 0 of net.ipv4.tcp_fastopen in the client's namespace"
            ) from None

    @property
    def wants_write(self) -> bool:
        """Whether the next event to wait for is that the socket takes data."""
        return not self.connected or bool(self._unsent)

    def finish_connect(self) -> None:
        """The socket became writable for the first time.

        Raises:
            OSError: the connection failed.
        """
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self.connected = True

    def start(self, fetch: Fetch) -> None:
        """Send the request of ``fetch``; with Fast Open it leaves in the SYN."""
        self.fetch = fetch
        self.response = Response(fetch.node.method)
        self._unsent = fetch.request
        self.flush()

    def flush(self) -> None:
        """Send what is left of the request, as far as the socket takes it."""
        try:
            sent = self.socket.send(self._unsent)
        except BlockingIOError:
            # Also EINPROGRESS: the cookie has gone, and the SYN left without data.
            return
        self._unsent = self._unsent[sent:]

    def receive(self) -> bytes | None:
        """What has arrived: ``b""`` at the end of the stream, ``None`` when nothing has."""
        try:
            return self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None

    def release(self) -> None:
        """The response has been read; the connection is free for another fetch."""
        self.used = True
        self.fetch = None
        self.response = None


def request_bytes(method: str, target: str, host: str, port: int, referer: str | None) -> bytes:
    """A request as Chrome sent them in 2013, filled up by a cookie to ``REQUEST_BYTES``."""
    lines = [
        f"{method} {target} HTTP/1.1",
        f"Host: {host}" if port == 80 else f"Host: {host}:{port}",
        "Connection: keep-alive",
        f"User-Agent: {USER_AGENT}",
        "Accept: */*",
        *([f"Referer: {referer}"] if referer else []),
        *(["Content-Length: 0"] if method == "POST" else []),
        "Accept-Encoding: gzip,deflate,sdch",
        "Accept-Language: en-US,en;q=0.8",
        "Accept-Charset: ISO-8859-1,utf-8;q=0.7,*;q=0.3",
    ]
    size = sum(len(line) + 2 for line in lines) + 2
    room = REQUEST_BYTES - size - len("Cookie: id=\r\n")
    if room > 0:
        lines.append("Cookie: id=" + "0" * room)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
