"""Web servers of tests: what a handler answers, or a folder, on loopback in a thread."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

from testbed.pages.authority import make_authority

LOOPBACK = ("127.0.0.1", 0)
_S = TypeVar("_S", bound=socketserver.BaseServer)


class Handler(BaseHTTPRequestHandler):
    """Keeps connections, and says nothing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post()

    def get(self) -> None:
        """Answer a GET."""
        self.send_error(405)

    post = get

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class FolderHandler(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """A thread for each connection; with ``context`` over TLS."""

    request_queue_size = 256
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, handler: Callable[..., socketserver.BaseRequestHandler],
        context: ssl.SSLContext | None = None, address: tuple[str, int] = LOOPBACK,
    ) -> None:  # fmt: skip
        super().__init__(address, handler)
        if context is not None:
            # The handshake is the connection's: it must not keep others waiting.
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client may go in the middle of an answer, or of a handshake."""


@contextmanager
def running(server: _S) -> Iterator[_S]:
    """Have ``server`` serve for the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving_folder(folder: Path) -> Iterator[str]:
    """Serve the files of ``folder`` for the block; yield the address."""
    with running(Server(partial(FolderHandler, directory=str(folder)))) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def make_context(folder: Path, *hosts: str) -> ssl.SSLContext:
    """Write certificates of ``hosts`` into ``folder``; the context shows that of the first."""
    for name, data in make_authority(hosts).items():
        (folder / name).write_bytes(data)
    return open_context(folder, hosts[0])


def open_context(folder: Path, host: str) -> ssl.SSLContext:
    """A server's context with the certificate of ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{host}.pem", folder / "key.pem")
    return context
