"""The real browser decodes padded bodies, over TLS, where alone it asks for br and zstd."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from testbed.base.proc import started
from testbed.client.chromium.browser import find_browser
from wings.pages.coding import encode
from wings.pages.tests.replay import open_tab

pytestmark = pytest.mark.browser

HOST = "padded.test"
CODINGS = ("gzip", "deflate", "br", "zstd")
SIZES = (300, 3000, 80_000)


def script(name: str) -> bytes:
    return f'seen.push("{name}");/* {"word " * 200}*/'.encode()


def page(names: list[str]) -> bytes:
    scripts = "".join(f'<script src="/{name}"></script>' for name in names)
    report = 'onload=function(){fetch("/seen",{method:"POST",body:JSON.stringify(seen)})}'
    return f"<!doctype html><script>seen=[];{report}</script>{scripts}".encode()


class Handler(BaseHTTPRequestHandler):
    """Serves what ``bodies`` has: path to (coding, body); takes the page's report."""

    bodies: ClassVar[dict[str, tuple[str, bytes]]] = {}
    offered: ClassVar[set[str]] = set()
    seen: ClassVar[list[str]] = []
    done = threading.Event()

    def log_message(self, *_: object) -> None:
        """Keep standard error quiet."""

    def do_GET(self) -> None:
        """One body in its coding."""
        self.offered.add(self.headers["Accept-Encoding"])
        coding, body = self.bodies.get(self.path, ("identity", b""))
        self.send_response(200)
        kind = "text/html" if self.path == "/" else "text/javascript"
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        if coding != "identity":
            self.send_header("Content-Encoding", coding)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """The names of the scripts that ran."""
        self.seen[:] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.done.set()


def write_certificate(folder: Path) -> tuple[Path, str]:
    """A certificate with its key in one file, and the hash of its public key for the browser."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now().astimezone()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, SHA256())
    )
    path = folder / "both.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    info = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return path, base64.b64encode(hashlib.sha256(info).digest()).decode()


class Server(ThreadingHTTPServer):
    """One thread for each connection, over TLS."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the browser was stopped in the middle of a response."""


@contextmanager
def served(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_browser_runs_every_padded_script(tmp_path: Path) -> None:
    names = [f"{coding}-{size}.js" for coding in CODINGS for size in SIZES]
    for name in names:
        coding, size = name.removesuffix(".js").split("-")
        body = encode(script(name), coding, int(size))
        assert len(body) == int(size)
        Handler.bodies[f"/{name}"] = coding, body
    document = encode(page(names), "zstd", 5000)
    Handler.bodies["/"] = "zstd", document
    certificate, pin = write_certificate(tmp_path)
    with served(certificate) as port, tempfile.TemporaryDirectory() as profile:
        argv = [
            str(find_browser()),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            f"--ignore-certificate-errors-spki-list={pin}",
            f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
        ]
        with started(argv):
            open_tab(Path(profile) / "DevToolsActivePort", f"https://{HOST}/")
            assert Handler.done.wait(300), "no report"
    assert Handler.seen == names
    assert Handler.offered == {"gzip, deflate, br, zstd"}
