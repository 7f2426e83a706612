"""A client and a server in two network namespaces, a replay server, a name server, a SYN count."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from testbed import proc
from testbed.namespace import Namespace
from testbed.page.archive import Archive, Entry

NETWORK = "10.83.0"
CLIENT_ADDRESS = f"{NETWORK}.1"
SERVER_ADDRESS = f"{NETWORK}.2"
FAST_OPEN_WITHOUT_COOKIES = "519"
PACKET_HEADER = 14
SOURCES = Path(__file__).parents[2] / "testbed"


def png(shade: int) -> bytes:
    """A valid one-pixel picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixel = zlib.compress(bytes([0, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


@dataclass
class Site:
    """A small page under construction: its archive entries, and the bytes that are served."""

    root: str = "http://www.page.test/"
    entries: list[Entry] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    def add(
        self,
        url: str,
        body: bytes,
        mime: str,
        how: str = "parser",
        parent: str | None = None,
        **more: Any,
    ) -> None:
        """Add one resource; ``more`` are further fields of its entry."""
        parts = urlsplit(url)
        depth = 0 if how == "root" else 1
        values: dict[str, Any] = {
            "id": str(len(self.entries)),
            "url": url,
            "host": parts.netloc,
            "path": parts.path,
            "method": "GET",
            "status": 200,
            "headers": (("Content-Type", mime),),
            "headers_size": 200,
            "body_size": len(body),
            "decoded_size": len(body),
            "mime": mime,
            "body": None,
            "location": None,
            "parent": None if how == "root" else parent or self.root,
            "carrier": None if how == "root" else parent or self.root,
            "how": how,
            "gap_ms": None,
            "start_ms": None,
            "dur_ms": None,
            "depth": depth,
        }
        self.entries.append(Entry(**(values | more)))
        self.bodies[url] = body

    def archive(self) -> Archive:
        """The page as a client gets it."""
        digest = hashlib.sha256(repr(self.entries).encode()).hexdigest()
        return Archive("site", "A small site", self.root, tuple(self.entries), digest)


@pytest.fixture
def site() -> Site:
    """A page with a stylesheet, a script, a frame, a redirect, and more pictures than 6."""
    site = Site()
    images = [f"http://img.page.test/{number}.png" for number in range(9)]
    page = b"".join(
        [
            b"<!doctype html><html><head><meta charset=utf-8><title>t</title>",
            b'<link rel=stylesheet href="/s.css"><script src="/s.js"></script></head><body>',
            *(f'<img src="{url}">'.encode() for url in images),
            b'<img src="/go.png"><iframe src="/frame.html"></iframe></body></html>',
        ]
    )
    site.add(site.root, page, "text/html", how="root", dur_ms=10.0)
    css = b"body{background:url(/back.png)}"
    site.add("http://www.page.test/s.css", css, "text/css", gap_ms=-5.0)
    script = b"new Image().src='/scripted.png';"
    site.add("http://www.page.test/s.js", script, "text/javascript", gap_ms=-4.0)
    for number, url in enumerate(images):
        site.add(url, png(number), "image/png", gap_ms=-3.0)
    target = "http://img.page.test/target.png"
    go = "http://www.page.test/go.png"
    site.add(go, b"", "image/png", status=302, location=target, gap_ms=-2.0,
             headers=(("Location", target),))  # fmt: skip
    site.add(target, png(100), "image/png", how="redirect", parent=go)
    frame = "http://www.page.test/frame.html"
    site.add(frame, b'<img src="/in-frame.png">', "text/html", how="frame", gap_ms=-1.0)
    site.add("http://www.page.test/in-frame.png", png(101), "image/png", parent=frame)
    style, code = "http://www.page.test/s.css", "http://www.page.test/s.js"
    site.add("http://www.page.test/back.png", png(102), "image/png", how="css", parent=style)
    site.add("http://www.page.test/scripted.png", png(103), "image/png", how="script",
             parent=code, gap_ms=20.0)  # fmt: skip
    return site


@dataclass(frozen=True)
class TwoEnds:
    """The client's and the server's namespace, joined by a pair of virtual Ethernet devices."""

    client: Namespace
    server: Namespace

    def set_fast_open(self, wanted: str) -> None:
        """Set net.ipv4.tcp_fastopen at both ends."""
        for end in (self.client, self.server):
            end.write_sysctls({"net.ipv4.tcp_fastopen": wanted})


@pytest.fixture(scope="session")
def two_ends() -> Iterator[TwoEnds]:
    """Two namespaces of our own; they and their files are gone afterwards."""
    names = [f"ff-test-{end}-{os.getpid()}" for end in ("c", "s")]
    with ExitStack() as undo:
        for name in names:
            proc.run(["ip", "netns", "add", name])
            undo.callback(proc.run, ["ip", "netns", "delete", name])
        folder = Path("/etc/netns") / names[0]
        folder.mkdir(parents=True)
        undo.callback(shutil.rmtree, folder)
        (folder / "resolv.conf").write_text(f"nameserver {SERVER_ADDRESS}\n")
        (folder / "nsswitch.conf").write_text("hosts: files dns\n")
        (folder / "hosts").write_text("127.0.0.1 localhost\n")
        client, server = (Namespace(name) for name in names)
        peer = ("type", "veth", "peer", "name", "s0", "netns", server.name)
        proc.run(["ip", "-n", client.name, "link", "add", "c0", *peer])
        addresses = {client: [CLIENT_ADDRESS], server: [f"{NETWORK}.{n}" for n in (2, 11, 12)]}
        for end, device in ((client, "c0"), (server, "s0")):
            end.write_sysctls({"net.ipv6.conf.all.disable_ipv6": "1"})
            proc.run(["ip", "-n", end.name, "link", "set", "lo", "up"])
            for address in addresses[end]:
                proc.run(["ip", "-n", end.name, "address", "add", f"{address}/24", "dev", device])
            proc.run(["ip", "-n", end.name, "link", "set", device, "up"])
        yield TwoEnds(client, server)


@dataclass
class Syns:
    """Payload bytes of each SYN that arrived at the server."""

    payloads: list[int] = field(default_factory=list)

    def take(self, frame: bytes) -> None:
        """Count ``frame`` if it is a client's SYN over IPv4."""
        if frame[12:14] != b"\x08\x00" or frame[PACKET_HEADER + 9] != socket.IPPROTO_TCP:
            return
        ip_bytes = (frame[PACKET_HEADER] & 15) * 4
        total = int.from_bytes(frame[PACKET_HEADER + 2 : PACKET_HEADER + 4], "big")
        tcp = PACKET_HEADER + ip_bytes
        if frame[tcp + 13] & 0x12 == 0x02:
            self.payloads.append(total - ip_bytes - (frame[tcp + 12] >> 4) * 4)


@dataclass
class Replay:
    """What the server does: answers of a site, and URLs that it treats otherwise."""

    site: Site
    syns: Syns = field(default_factory=Syns)
    asked: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  # answered 404
    cut: set[str] = field(default_factory=set)  # the connection is reset instead of an answer
    stalled: set[str] = field(default_factory=set)  # never answered
    closing: bool = False  # every answer says Connection: close
    chunked: bool = False

    def respond(self, request: http.server.BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        url = f"http://{request.headers['Host']}{request.path}"
        self.asked.append(url)
        if url in self.stalled:
            threading.Event().wait(30)
        if url in self.cut:
            linger = struct.pack("ii", 1, 0)
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            request.connection.close()
            request.close_connection = True
            return
        entry = next((e for e in self.site.entries if e.url == url), None)
        known = entry is not None and url not in self.refused
        body = self.site.bodies[url] if known else b"no such thing"
        request.send_response(entry.status if entry is not None and known else 404)
        for name, value in entry.headers if entry is not None and known else ():
            request.send_header(name, value)
        request.send_header("Connection", "close" if self.closing else "keep-alive")
        if self.chunked and body:
            request.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may go away in the middle of an answer."""


def _handler(replay: Replay) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            replay.respond(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _answer_names(names: socket.socket, addresses: dict[str, str], stop: threading.Event) -> None:
    """Answer A questions; AAAA gets an empty answer, an unknown name NXDOMAIN."""
    while not stop.is_set():
        try:
            query, client = names.recvfrom(512)
        except TimeoutError:
            continue
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        end = at + 5
        address = addresses.get(".".join(labels).lower())
        wanted = query[at + 1 : at + 3] == b"\x00\x01"
        records = [socket.inet_aton(address)] if address and wanted else []
        flags = 0x8580 if address else 0x8583
        head = query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
        tail = b"".join(struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + a for a in records)
        names.sendto(head + query[12:end] + tail, client)


def _count_syns(packets: socket.socket, syns: Syns, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            syns.take(packets.recv(65536))
        except TimeoutError:
            continue


@contextmanager
def _reading(run: Callable[..., None], reader: socket.socket, subject: object) -> Iterator[None]:
    """Run ``run(reader, subject, stop)`` beside; its undo stops it and closes the socket."""
    stop = threading.Event()
    reader.settimeout(0.1)
    thread = threading.Thread(target=run, args=(reader, subject, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        reader.close()


@contextmanager
def _serving(server: http.server.HTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def serve(two_ends: TwoEnds) -> Iterator[Callable[[Site], Replay]]:
    """Start servers for a site in the server's namespace; gives what they saw."""
    with ExitStack() as undo:

        def start(site: Site) -> Replay:
            replay = Replay(site)
            hosts = ("www.page.test", "img.page.test")
            addresses = {h: f"{NETWORK}.{11 + n}" for n, h in enumerate(hosts)}
            with two_ends.server.entered():
                servers = [_Server((a, 80), _handler(replay)) for a in addresses.values()]
                names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                names.bind((SERVER_ADDRESS, 53))
                every_protocol = socket.htons(3)
                packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, every_protocol)
                packets.bind(("s0", 0))
            for server in servers:
                undo.enter_context(_serving(server))
            undo.enter_context(_reading(_answer_names, names, addresses))
            undo.enter_context(_reading(_count_syns, packets, replay.syns))
            return replay

        yield start


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the shim compiled from its source and the driver as it was built.

    FIRSTFLIGHT_JS names the folder in which ``npm ci && npm run build`` ran; without it the
    driver is built in the source folder's ``dist/``.
    """
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "native").mkdir()
    compile_shim(folder / "native" / "tfo.so")
    built = os.environ.get("FIRSTFLIGHT_JS", str(SOURCES / "client" / "chromium"))
    driver = Path(built) / "dist" / "load.cjs"
    assert driver.exists(), f"{driver} is not built: run npm ci && npm run build"
    (folder / "js").mkdir()
    shutil.copy(driver, folder / "js")
    return folder


def compile_shim(target: Path) -> None:
    """Compile the Fast Open shim with every warning an error."""
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    proc.run(["gcc", *flags, "-o", str(target), str(SOURCES / "native" / "tfo.c")])
