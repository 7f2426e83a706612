"""The real browser trusts the lab's chain by the hash of its intermediate's key, and only then."""

from __future__ import annotations

import ssl
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from testbed.base.proc import CommandError, run
from testbed.client.chromium.browser import find_browser
from testbed.pages.build import build_page
from wings.pages.har_export import write_archive
from wings.pages.tests.recordings import make_recording

pytestmark = pytest.mark.browser


class Handler(BaseHTTPRequestHandler):
    """Says one word."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>served</p>")

    def log_message(self, *_: object) -> None:
        """Keep standard error quiet."""


class Server(ThreadingHTTPServer):
    """A refused handshake is no error here."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@pytest.fixture
def tls(tmp_path: Path) -> Path:
    write_archive(tmp_path / "mine", make_recording(), licence="none")
    return build_page(tmp_path / "mine", tmp_path / "cache") / "tls"


@pytest.fixture
def port(tls: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "www.example.com.pem", tls / "key.pem")
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def load(port: int, *flags: str) -> str:
    """The document that the browser shows for the page's host."""
    with tempfile.TemporaryDirectory() as profile:
        argv = [
            str(find_browser()),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
            *flags,
            "--dump-dom",
            "https://www.example.com/",
        ]
        return run(argv, timeout_s=300).stdout


def test_it_is_trusted_by_the_hash(tls: Path, port: int) -> None:
    spki = (tls / "authority.spki").read_text()
    assert "served" in load(port, f"--ignore-certificate-errors-spki-list={spki}")


def test_it_is_not_trusted_without(port: int) -> None:
    with pytest.raises(CommandError, match="ERR_CERT_AUTHORITY_INVALID"):
        load(port)
