"""A replay server that can misbehave, TLS before it, a name server, and a count of SYN payloads."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from testbed.base import proc
from testbed.base.namespace import Namespace
from tests.client.sites import Site
from tests.web import Handler, Server

PACKET_HEADER = 14
HELD_S = 60.0
SLOW_S = 0.3
SO_RCVBUFFORCE = 33  # asm-generic/socket.h; for root, and beyond net.core.rmem_max
QUEUE_BYTES = 64 << 20
SCHEME_HEADER = "X-Scheme"


class Syns:
    """Payload bytes of each SYN that arrived at the server.

    The kernel queues every frame before any server answers it, and who asks for the payloads reads
    them all: no thread has to keep up.
    """

    def __init__(self, packets: socket.socket) -> None:
        """``packets`` is bound to the server's device."""
        packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
        packets.setblocking(False)
        self._packets = packets
        self._payloads: list[int] = []

    @property
    def payloads(self) -> list[int]:
        """Of all SYNs until now; to clear it is to forget them."""
        with suppress(BlockingIOError):
            while True:
                self._take(self._packets.recv(65536))
        return self._payloads

    def _take(self, frame: bytes) -> None:
        """Count ``frame`` if it is a client's SYN over IPv4."""
        if frame[12:14] != b"\x08\x00" or frame[PACKET_HEADER + 9] != socket.IPPROTO_TCP:
            return
        ip_bytes = (frame[PACKET_HEADER] & 15) * 4
        total = int.from_bytes(frame[PACKET_HEADER + 2 : PACKET_HEADER + 4], "big")
        tcp = PACKET_HEADER + ip_bytes
        if frame[tcp + 13] & 0x12 == 0x02:
            self._payloads.append(total - ip_bytes - (frame[tcp + 12] >> 4) * 4)


@dataclass
class Replay:
    """What the server does: answers of a site, and URLs that it treats otherwise."""

    site: Site
    syns: Syns
    asked: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  # answered 404
    cut: set[str] = field(default_factory=set)  # the connection is reset instead of an answer
    stalled: set[str] = field(default_factory=set)  # never answered
    slow: set[str] = field(default_factory=set)  # answered after a while
    held: dict[str, str] = field(default_factory=dict)  # answered once another was asked for
    closing: bool = False  # every answer says Connection: close
    chunked: bool = False
    news: threading.Condition = field(default_factory=threading.Condition)

    def respond(self, request: Handler) -> None:
        scheme = request.headers.get(SCHEME_HEADER, "http")
        url = f"{scheme}://{request.headers['Host']}{request.path}"
        with self.news:
            self.asked.append(url)
            self.news.notify_all()
            self.news.wait_for(lambda: self.held.get(url, url) in self.asked, HELD_S)
        if url in self.stalled:
            threading.Event().wait(30)
        if url in self.slow:
            threading.Event().wait(SLOW_S)
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


class FastServer(Server):
    """Takes requests in SYNs."""

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
        super().server_bind()


Serve = Callable[..., Replay]
"""Starts servers for a site."""


def handler(replay: Replay) -> type[Handler]:
    class ReplayHandler(Handler):
        wbufsize = -1

        def get(self) -> None:
            replay.respond(self)

    return ReplayHandler


def answer_names(names: socket.socket, addresses: dict[str, str], stop: threading.Event) -> None:
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


@contextmanager
def reading(run: Callable[..., None], reader: socket.socket, subject: object) -> Iterator[None]:
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


NGINX = """\
worker_processes 1;
daemon off;
master_process off;
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  ssl_certificate_key {tls}/key.pem;
  ssl_protocols {versions};
{servers}}}
"""
NGINX_SERVER = """\
  server {{
    listen {address}:443 ssl {h2} fastopen=64;
    server_name {host};
    ssl_certificate {tls}/{host}.pem;
    location / {{
      proxy_pass http://{address}:80;
      proxy_http_version 1.1;
      proxy_set_header Host {host};
      proxy_set_header {scheme_header} https;
    }}
  }}
"""


@contextmanager
def serving_tls(
    namespace: Namespace, hosts: dict[str, str], tls: Path, scratch: Path, h2: bool, versions: str
) -> Iterator[None]:
    """Take TLS connections on port 443 of each host's address, and pass them on to port 80.

    ``tls`` has the lab's authority, as in a built page; ``scratch`` is a folder to make.
    """
    scratch.mkdir()
    common = {"tls": tls, "scheme_header": SCHEME_HEADER, "h2": "http2" if h2 else ""}
    servers = "".join(NGINX_SERVER.format(host=h, address=a, **common) for h, a in hosts.items())
    config = scratch / "nginx.conf"
    config.write_text(NGINX.format(scratch=scratch, tls=tls, versions=versions, servers=servers))
    argv = (*namespace.prefix, "nginx", "-e", str(scratch / "log"), "-c", str(config))
    with (
        (scratch / "output").open("wb") as log,
        proc.started(argv, stdout=log, stderr=log) as child,
    ):
        while _listeners(namespace) < len(hosts):
            assert child.poll() is None, (scratch / "output").read_text()
        yield


def _listeners(namespace: Namespace) -> int:
    with namespace.entered():
        table = Path("/proc/thread-self/net/tcp").read_text()
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(row[3] == "0A" and row[1].endswith(":01BB") for row in rows)
