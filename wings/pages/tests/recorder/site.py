"""A web site of several hosts on loopback whose every byte a test decides."""

from __future__ import annotations

import base64
import gzip
import hashlib
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.web import Server, running
from wings.pages.synthesis.media import make_png

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of every WebSocket
WWW, STATIC, API = "http://www.site.test", "http://static.site.test", "http://api.other.test"


@dataclass(frozen=True)
class Answer:
    """A response: ``body`` as transferred; it is cut after ``cut`` bytes, and the stream held."""

    body: bytes = b""
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False
    cut: int | None = None
    delay_s: float = 0.0
    pieces: tuple[bytes, ...] = ()
    """In chunks of their own, ``pause_s`` apart; the stream stays open if it is ``cut``."""
    pause_s: float = 0.0

    def lines(self) -> tuple[tuple[str, str], ...]:
        """The header lines."""
        if self.status.startswith(("204", "304", "101")):
            return self.headers
        if self.chunked or self.pieces:
            return (*self.headers, ("Transfer-Encoding", "chunked"))
        return (*self.headers, ("Content-Length", str(len(self.body))))

    def head(self) -> bytes:
        """The head as sent, with its blank line."""
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self.lines())]
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")

    def wire(self) -> bytes:
        """The body as sent."""
        if self.pieces:
            return b""
        if not self.chunked:
            return self.body if self.cut is None else self.body[: self.cut]
        middle = len(self.body) // 2
        parts = [part for part in (self.body[:middle], self.body[middle:]) if part]
        return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def png(shade: int) -> bytes:
    """A picture; another shade is another one."""
    return make_png(100, bytes([shade]) * 100)


def typed(body: bytes, mime: str, *more: tuple[str, str], **how: object) -> Answer:
    """An answer with a content type."""
    return Answer(body, headers=(("Content-Type", mime), *more), **how)  # type: ignore[arg-type]


def zipped(body: bytes, mime: str, *more: tuple[str, str]) -> Answer:
    """The same under gzip, the same bytes each time."""
    return typed(gzip.compress(body, mtime=0), mime, ("Content-Encoding", "gzip"), *more)


@dataclass
class Site:
    """Answers by method and URL, or by the size of the request's body too; what was asked for."""

    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    sized: dict[tuple[str, str, int], Answer] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    talks: dict[str, tuple[str | float, ...]] = field(default_factory=dict)
    """What is said on a WebSocket, by its path."""
    offered: set[str] = field(default_factory=set)
    """What ``Accept-Encoding`` said."""
    port: int = 0
    tls_port: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def rules(self) -> tuple[str, ...]:
        """The browser's way to the site, whatever the host and port."""
        return ("MAP dead.test 127.0.0.1:1", f"MAP * 127.0.0.1:{self.port}")

    def answer(self, method: str, url: str) -> Answer:
        """What this request is answered with."""
        missing = Answer(b"no such page", "404 Not Found", (("Content-Type", "text/plain"),))
        return self.answers.get((method, url), missing)

    def put(self, url: str, answer: Answer, method: str = "GET") -> None:
        """Answer ``url`` with ``answer``."""
        self.answers[method, url] = answer


class _Handler(socketserver.StreamRequestHandler):
    """HTTP/1.1 with kept connections, no more of it than the tests need."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        while line := self.rfile.readline():
            method, target, _ = line.decode("latin-1").split(" ", 2)
            headers = {}
            while (line := self.rfile.readline().strip()) != b"":
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            size = len(self.rfile.read(int(headers.get("content-length", "0"))))
            site.offered.add(headers.get("accept-encoding", ""))
            url = f"{self.server.scheme}://{headers['host']}{target}"  # type: ignore[attr-defined]
            site.asked.append((method, url))
            answer = site.sized.get((method, url, size)) or site.answer(method, url)
            answer = _accepted(headers) or _unchanged(headers, answer) or answer
            site.ended.wait(answer.delay_s)
            self.wfile.write(answer.head() + (b"" if method == "HEAD" else answer.wire()))
            self.wfile.flush()
            if answer.pieces:
                self._stream(answer)
            if answer.status.startswith("101"):
                self._talk(site.talks.get(target, ()))
            if answer.cut is not None or answer.status.startswith("101"):
                site.ended.wait(60)
                return

    def _stream(self, answer: Answer) -> None:
        for number, piece in enumerate(answer.pieces):
            time.sleep(answer.pause_s if number else 0)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n" if answer.cut is None else b"")

    def _talk(self, steps: tuple[str | float, ...]) -> None:
        """Say each text, wait for a frame at each 0, else so many seconds."""
        for step in steps:
            if step == 0:
                size = self.rfile.read(2)[1] & 127
                self.rfile.read(size + 4)
            elif isinstance(step, float):
                time.sleep(step)
            else:
                said = str(step).encode()
                self.wfile.write(bytes([0x81, len(said)]) + said)


def _unchanged(headers: Mapping[str, str], answer: Answer) -> Answer | None:
    """304 to one who has the answer already (RFC 9110 section 13.1.2)."""
    tag = dict(answer.headers).get("ETag")
    if tag is None or headers.get("if-none-match") != tag:
        return None
    return Answer(status="304 Not Modified", headers=answer.headers)


def _accepted(headers: Mapping[str, str]) -> Answer | None:
    """The opening handshake of a WebSocket (RFC 6455 section 4.2.2)."""
    if headers.get("upgrade", "").lower() != "websocket":
        return None
    digest = hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()  # noqa: S324
    said = (("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", base64.b64encode(digest).decode()))  # fmt: skip
    return Answer(status="101 Switching Protocols", headers=said)


class _Server(Server):
    def __init__(self, site: Site, context: ssl.SSLContext | None) -> None:
        super().__init__(_Handler, context)
        self.site = site
        self.scheme = "http" if context is None else "https"


@contextmanager
def serving(site: Site, context: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Serve ``site`` on free ports of loopback for the time of the block.

    With ``context`` there is a port for https, too.
    """
    with ExitStack() as undo:
        site.port = undo.enter_context(running(_Server(site, None))).server_port
        if context is not None:
            site.tls_port = undo.enter_context(running(_Server(site, context))).server_port
        undo.callback(site.ended.set)
        yield site


PAGE = f"""<!doctype html><html><head><title>A &amp; site</title>
<link rel=stylesheet href="{STATIC}/style.css">
<script src="{STATIC}/app.js"></script></head>
<body class=text>text<img src="/pixel.png"><img src="/pixel.png#again">
<img src="/old.png"><img src="/none.png"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<iframe src="{API}/frame.html"></iframe>
<script>
const stopper = new AbortController();
fetch('/held.txt', {{signal: stopper.signal}}).then((answer) => stopper.abort(), () => 0);
const mute = new AbortController();
fetch('/mute.txt', {{signal: mute.signal}}).catch(() => 0);
setTimeout(() => mute.abort(), 5000);
fetch('/empty');
fetch('http://dead.test/refused').catch(() => 0);
const twice = async (path) => {{ await (await fetch(path)).text(); await fetch(path); }};
twice('/twice.json');
twice('/kept.json');
addEventListener('load', () => setTimeout(() => {{
  fetch('{API}/collect?late=1', {{method: 'POST', body: 'twelve bytes',
    headers: {{'X-Kind': 'a'}}}});
}}, 20));
</script></body></html>
"""
CSS = (
    f"@font-face {{ font-family: f; src: url({STATIC}/font.woff2); }}\n"
    f".text {{ font-family: f; background: url({STATIC}/back.png); }}\n"
)


SCRIPT = (
    f"const image = new Image();\nimage.src = '{STATIC}/script.png';\n".encode() + b"// \n" * 999
)


def make_site() -> Site:
    """A page with one of each."""
    site = Site()
    cors = ("Access-Control-Allow-Origin", "*")
    site.put(f"{WWW}/", zipped(PAGE.encode(), "text/html; charset=UTF-8", ("Set-Cookie", "a=b")))
    site.put(f"{STATIC}/style.css", zipped(CSS.encode(), "text/css", ("Cache-Control", "no-store")))
    site.put(f"{STATIC}/app.js", typed(SCRIPT, "text/javascript", chunked=True))
    site.put(f"{STATIC}/font.woff2", typed(b"wOF2 no font", "font/woff2", cors))
    site.put(f"{STATIC}/back.png", typed(png(1), "image/png"))
    site.put(f"{STATIC}/script.png", typed(png(2), "image/png"))
    site.put(f"{WWW}/pixel.png", typed(png(3), "image/png", ("Cache-Control", "max-age=60")))
    moved = (("Location", f"{STATIC}/new.png"), ("Content-Type", "text/html"))
    site.put(f"{WWW}/old.png", Answer(b"<p>moved</p>", "302 Found", moved))
    site.put(f"{STATIC}/new.png", typed(png(4), "image/png"))
    frame = f'<p>frame</p><img src="{STATIC}/pixel.png">'.encode()
    site.put(f"{API}/frame.html", typed(frame, "text/html"))
    site.put(f"{STATIC}/pixel.png", typed(png(5), "image/png"))
    once = ("Cache-Control", "no-store")
    site.put(f"{WWW}/twice.json", typed(b"[1, 2]", "application/json", once))
    hour = ("Cache-Control", "max-age=3600")
    site.put(f"{WWW}/kept.json", typed(b"[3, 4]", "application/json", hour))
    site.put(f"{WWW}/empty", Answer(status="204 No Content"))
    site.put(f"{WWW}/held.txt", typed(b"x" * 5000, "text/plain", cut=1000))
    site.put(f"{WWW}/mute.txt", typed(b"late", "text/plain", delay_s=60))
    allow = ("Access-Control-Allow-Headers", "x-kind")
    site.put(f"{API}/collect?late=1", Answer(b"", "200 OK", (cors, allow)), "OPTIONS")
    got = typed(b'{"got": 12}', "application/json", cors)
    site.put(f"{API}/collect?late=1", got, "POST")
    return site


if __name__ == "__main__":
    with serving(make_site()) as served:
        print(served.rules[0], flush=True)
        time.sleep(3600)
