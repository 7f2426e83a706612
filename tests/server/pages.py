"""Small archives, and a client that counts the bytes of every response."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.archive.posted import MatchRule
from testbed.archive.reading import DEFAULT_PORTS, Archive, Entry
from testbed.model import Replay
from testbed.server.listeners import Listener, lab_listeners
from testbed.server.nginx import ServerOptions, serve
from testbed.server.replay_log import read_replay

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
    host, scheme = more.get("host", HOST), more.get("scheme", "http")
    port = more.get("port", DEFAULT_PORTS[scheme])
    shown = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    values: dict[str, Any] = {
        "id": path, "url": f"{scheme}://{host}{shown}{path}", "scheme": scheme, "host": host,
        "port": port, "path": path, "protocol": "http/1.1", "request_body_size": 0, "method": "GET",
        "status": 200, "headers": (("Content-Type", "text/html"),), "headers_size": 300,
        "body_size": len(body), "decoded_size": len(body), "mime": "text/html", "body": file,
        "location": None, "parent": None, "carrier": None, "how": "root", "gap_ms": None,
        "start_ms": None, "dur_ms": None, "depth": 0, "after_load": False,
    }  # fmt: skip
    return Entry(**(values | more))


def make_archive(*entries: Entry) -> Archive:
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
        lines = self.head.decode("latin-1").split("\r\n")[1:-2]
        return dict(line.split(": ", 1) for line in lines)


class Connection:
    """A kept connection to one origin; with ``trust`` over TLS, which that context checks."""

    def __init__(
        self, address: str, host: str = HOST, port: int = 80, trust: ssl.SSLContext | None = None
    ) -> None:
        plain = socket.create_connection((address, port), timeout=10)
        self.socket = trust.wrap_socket(plain, server_hostname=host) if trust else plain
        self._host = host
        self._rest = b""

    def get(self, path: str) -> Response:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: bytes = b"", host: str | None = None) -> Response:
        """Send one request and read exactly one response."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: {host or self._host}\r\n{length}\r\n"
        self.send(head.encode("latin-1") + body)
        return self.receive(method != "HEAD")

    def send(self, data: bytes) -> None:
        """Send ``data``, which need not be a request."""
        self.socket.sendall(data)

    def receive(self, has_body: bool = True) -> Response:
        while b"\r\n\r\n" not in self._rest:
            self._receive()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        response = Response(head + b"\r\n\r\n", b"")
        bodiless = not has_body or response.status in (204, 304)
        size = 0 if bodiless else int(response.headers.get("Content-Length", "0"))
        while len(self._rest) < size:
            self._receive()
        body, self._rest = self._rest[:size], self._rest[size:]
        return Response(response.head, body)

    def closed(self) -> bool:
        """Whether the server has closed; fails when it says something instead."""
        assert self._rest == b""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def _receive(self) -> None:
        data = self.socket.recv(65536)
        assert data, "the server closed in the middle of a response"
        self._rest += data


@dataclass(frozen=True)
class Served:
    """Entries being served on loopback: the server's folder and where each listener is."""

    scratch: Path
    entries: tuple[Entry, ...]
    listeners: tuple[Listener, ...]

    @contextmanager
    def connected(
        self, host: str = HOST, port: int = 80, trust: ssl.SSLContext | None = None
    ) -> Iterator[Connection]:
        (bound,) = (e.bound_port for e in self.listeners if (e.host, e.port) == (host, port))
        assert bound is not None
        connection = Connection("127.0.0.1", host, bound, trust)
        try:
            yield connection
        finally:
            connection.close()
            self._settle()

    def _settle(self) -> None:
        """Have one more answer: nginx has then done with what it answered before."""
        plain = next(each for each in self.listeners if not each.tls)
        assert plain.bound_port is not None
        last = Connection("127.0.0.1", "prime", plain.bound_port)
        assert last.get("/").status == 404
        last.close()

    def replay(self) -> Replay:
        """What the log says; complete once the server has ended."""
        return read_replay(self.scratch, self.entries)


def curl_maps(listeners: tuple[Listener, ...]) -> list[str]:
    """The words by which curl finds each listener."""
    return [word for each in listeners
            for word in ("--connect-to", f"{each.host}:{each.port}:{each.sockets[0]}")]  # fmt: skip


@contextmanager
def on_loopback(
    scratch: Path, *entries: Entry, protocol: str = "as-recorded",
    terms: ServerOptions | None = None, rules: tuple[MatchRule, ...] = (),
) -> Iterator[Served]:  # fmt: skip
    """Serve ``entries`` on free ports of loopback; needs no root."""
    archive = replace(make_archive(*entries), rules=rules)
    addresses = dict.fromkeys(archive.hosts, ("127.0.0.1",))
    wanted = lab_listeners(archive, addresses, protocol)
    with ExitStack() as ends:
        sockets = [ends.enter_context(socket.socket()) for _ in wanted]
        for end in sockets:
            end.bind(("127.0.0.1", 0))
        ports = [end.getsockname()[1] for end in sockets]
    listeners = tuple(
        replace(each, bound_port=port) for each, port in zip(wanted, ports, strict=True)
    )
    with serve(None, archive, listeners, scratch / "nginx", terms or ServerOptions()):
        yield Served(scratch / "nginx", archive.entries, listeners)
