"""HTTP/1.1 connection, with or without TLS, opened by Fast Open where that is asked for.

Sources: tcp(7), TCP_FASTOPEN_CONNECT in Linux's net/ipv4/tcp.c.
"""

from __future__ import annotations

import errno
import os
import socket

from testbed.base.addresses import family_of
from testbed.client.graph_process.response import HttpResponse

TYPE_CHECKING = False  # not from typing, whose import costs every start
if TYPE_CHECKING:
    from testbed.client.graph_process.fetch import Fetch
    from testbed.client.graph_process.tls import Tls

TCP_FASTOPEN_CONNECT = 30  # linux/tcp.h; Python's socket module has no name for it
RECEIVE_BYTES = 65536


class FastOpenRefusedError(Exception):
    """The kernel does not let this namespace open connections by Fast Open."""


class HttpConnection:
    """A non-blocking socket, its TLS if any, and the fetch that it carries at the moment."""

    __slots__ = ("_tls", "_unsent", "connected", "fetch", "number", "response", "socket", "used")

    def __init__(
        self, address: tuple[str, int], number: int, fast_open: bool, tls: Tls | None = None
    ) -> None:
        """Start to connect.

        Raises:
            FastOpenRefusedError: see there.
            OSError: the connection failed at once.
        """
        self.number = number
        self.fetch: Fetch | None = None
        self.response: HttpResponse | None = None
        self.used = False
        self._tls = tls
        self._unsent = b"" if tls is None else tls.shake(None)
        kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
        self.socket = socket.socket(family_of(address[0]), kind)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if fast_open:
                self._ask_fast_open()
            code = self.socket.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
            # With a cookie the kernel reports success at once and waits for the first write.
            self.connected = code == 0
            if self.connected and self._unsent:
                self.flush()
        except BaseException:
            self.socket.close()
            raise

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

    @property
    def ready(self) -> bool:
        """Whether a request may be sent: connected, and the TLS handshake done if there is one."""
        return self.connected and (self._tls is None or self._tls.ready)

    def advance(self) -> None:
        """Take the next step towards being ready; the socket is writable, or has bytes.

        Raises:
            OSError: the connection or the handshake failed.
        """
        if not self.connected:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            self.connected = True
        if self._unsent:
            self.flush()
        elif self._tls is not None:
            data = self._take()
            if data is not None:
                self._unsent = self._tls.shake(data)
                if self._unsent:
                    self.flush()

    def start(self, fetch: Fetch) -> None:
        """Send the request of ``fetch``; with Fast Open and no TLS it leaves in the SYN."""
        self.fetch = fetch
        self.response = HttpResponse(fetch.node.method)
        request = fetch.request + fetch.body
        self._unsent += request if self._tls is None else self._tls.encrypt(request)
        self.flush()

    def flush(self) -> None:
        """Send what is left of the request or the handshake, as far as the socket takes it."""
        try:
            sent = self.socket.send(self._unsent)
        except BlockingIOError:
            # Also EINPROGRESS: the cookie has gone, and the SYN left without data.
            return
        self._unsent = self._unsent[sent:]

    def receive(self) -> bytes | None:
        """Return what has arrived: ``b""`` at the end of the stream, ``None`` when nothing has.

        Raises:
            OSError: the connection broke.
        """
        data = self._take()
        return data if self._tls is None or data is None else self._tls.decrypt(data)

    def _take(self) -> bytes | None:
        try:
            return self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None

    def release(self) -> None:
        """Free the connection for another fetch: its response has been read."""
        if self._tls is not None and not self.used:
            self._tls.keep_session()
        self.used = True
        self.fetch = None
        self.response = None
