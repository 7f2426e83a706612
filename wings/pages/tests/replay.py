"""A small replay server and a browser for tests: serves an archive on loopback and keeps a log."""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from testbed.archive.reading import Archive, Entry
from testbed.base.proc import started
from tests.web import Handler, Server, running

LOADED = "/__loaded__"
# Said by the page after its load event: whatever is asked for too late comes later in the log.
# With it go the names of all resources of the document in the order in which it found them, and
# of the pictures that did not decode.
PROBE = b"""<script>onload=function(){setTimeout(function(){fetch("/__loaded__",{method:"POST",body:
JSON.stringify({found:performance.getEntriesByType("resource").map(function(e){return e.name}),
broken:[].filter.call(document.images,function(i){return !i.naturalWidth}).map(function(i){
return i.src})})})})}</script>"""
CHUNK_BYTES = 8192
CHUNK_S = 0.004


@dataclass
class Visit:
    """One request: when it came and when the response started, in seconds of one clock."""

    url: str
    came: float
    answered: float | None = None


@dataclass
class Replay:
    """A running server: what was asked of it so far in order, what broke, and the page's report.

    ``ports`` has one port for each scheme of the page.
    """

    ports: dict[str, int] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    loaded: threading.Event = field(default_factory=threading.Event)
    report: dict[str, list[str]] = field(default_factory=dict)
    late: int = 0


class ArchiveHandler(Handler):
    """Answers from an archive, slowly enough that a large body takes several packets' time."""

    log: Replay
    entries: dict[str, Entry]
    document: str

    def get(self) -> None:
        """Serve one object of the archive, or 404."""
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        visit = Visit(f"{scheme}://{self.headers['Host']}{self.path}", time.monotonic())
        self.log.visits.append(visit)
        entry = self.entries.get(visit.url)
        if entry is None:
            self.send_error(404)
            return
        body, headers = response(entry, probe=visit.url == self.document)
        self.send_response(entry.status)
        for name, value in headers:
            self.send_header(name, value)
        if entry.status != 204:
            self.send_header("Content-Length", str(len(body)))
        visit.answered = time.monotonic()
        self.end_headers()
        try:
            for start in range(0, len(body), CHUNK_BYTES):
                if start:
                    time.sleep(CHUNK_S)
                self.wfile.write(body[start : start + CHUNK_BYTES])
        except OSError:
            self.log.cut.append(visit.url)
            raise

    def post(self) -> None:
        """Take the page's report."""
        self.log.report.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.log.late = len(self.log.visits)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.log.loaded.set()


@contextmanager
def replay(archive: Archive, tls: Path | None = None) -> Iterator[Replay]:
    """Serve every host of the archive on loopback, on one port for each scheme.

    ``tls`` is the built page's folder of certificates.
    """
    document = root_document(archive)

    class Bound(ArchiveHandler):
        entries = {entry.url: entry for entry in archive.entries}  # noqa: RUF012
        log = Replay()

    Bound.document = document.url
    with ExitStack() as undo:
        for scheme in {entry.scheme for entry in archive.entries}:
            assert tls is not None or scheme == "http"
            context = tls_context(tls) if tls is not None and scheme == "https" else None
            server = undo.enter_context(running(Server(Bound, context)))
            Bound.log.ports[scheme] = server.server_port
        yield Bound.log


def tls_context(tls: Path) -> ssl.SSLContext:
    """A server's context with the certificate of whatever host is asked for."""

    def choose(connection: ssl.SSLObject, host: str | None, _: ssl.SSLContext) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / f"{host}.pem", tls / "key.pem")
        connection.context = context

    outer = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    outer.sni_callback = choose
    return outer


def root_document(archive: Archive) -> Entry:
    """The page's own document, at the end of the redirects from the root."""
    by_url = {entry.url: entry for entry in archive.entries}
    entry = archive.entries[0]
    while entry.location is not None:
        entry = by_url[entry.location]
    return entry


def response(entry: Entry, *, probe: bool) -> tuple[bytes, list[tuple[str, str]]]:
    """Body and headers of an entry; the page's own document gets the probe at its end."""
    body = entry.body.read_bytes() if entry.body else b""
    if probe:
        if ("Content-Encoding", "gzip") not in entry.headers:
            return body + PROBE, list(entry.headers)
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(zlib.decompress(body, 31) + PROBE) + packer.flush()
    return body, list(entry.headers)


def browse(
    archive: Archive, browser: Path, *, settle_s: float = 0.7, tls: Path | None = None
) -> Replay:
    """Load the page in a fresh browser, and wait ``settle_s`` after its load event.

    ``visits[late:]`` of the result are the requests that came after the load event.
    """
    with replay(archive, tls) as log, tempfile.TemporaryDirectory() as profile:
        numbers = {"http": 80, "https": 443}
        rules = [f"MAP *:{numbers[name]} 127.0.0.1:{port}" for name, port in log.ports.items()]
        argv = [str(browser), "--headless", "--no-sandbox", "--disable-gpu",
                "--remote-debugging-port=0", f"--user-data-dir={profile}",
                f"--host-resolver-rules={','.join(rules)}"]  # fmt: skip
        if tls is not None:
            pin = (tls / "authority.spki").read_text().strip()
            argv.append(f"--ignore-certificate-errors-spki-list={pin}")
        with started(argv):
            open_tab(Path(profile) / "DevToolsActivePort", archive.root_url)
            assert log.loaded.wait(300), f"no load event; asked for {len(log.visits)} objects"
            time.sleep(settle_s)
            cut = list(log.cut)
        log.cut = cut
        return log


def open_tab(port_file: Path, url: str) -> None:
    """Open ``url`` by the browser's debugging port, which it writes down once it listens."""
    deadline = time.monotonic() + 120
    while not (port_file.exists() and port_file.read_text().strip()):
        assert time.monotonic() < deadline, "the browser does not listen"
        time.sleep(0.02)
    port = int(port_file.read_text().split()[0])
    link = HTTPConnection("127.0.0.1", port, timeout=120)
    link.request("PUT", f"/json/new?{url}")
    assert link.getresponse().status == 200
    link.close()


def assert_none_early(archive: Archive, load: Replay) -> None:
    """Nothing was asked for before its parent's response began."""
    visits = {visit.url: visit for visit in load.visits}
    for entry in archive.entries:
        if entry.parent is not None:
            answered = visits[entry.parent].answered
            assert answered is not None
            assert visits[entry.url].came >= answered, f"{entry.url} before {entry.parent}"
