"""The real nginx: every response has the recorded bytes, head and body."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.head import natural_size, sent_headers
from testbed.archive.reading import Entry
from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.capture.counters import difference, read_counters
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import ServerOptions, serve
from tests.lab.wires import namespace
from tests.server.pages import HOST, OTHER_HOST, Connection, Response, make_archive, make_entry

pytestmark = pytest.mark.root

ADDRESSES = {HOST: "10.10.0.1", OTHER_HOST: "10.10.0.2"}
TYPE = ("Content-Type", "text/html")
LOCATION = ("Location", f"http://{OTHER_HOST}/next?a=b")


@pytest.fixture(scope="module")
def server() -> Iterator[Namespace]:
    """A namespace with both origins' addresses."""
    with namespace("n") as made:
        for address in ADDRESSES.values():
            proc.run(("ip", "-n", made.name, "address", "add", f"{address}/32", "dev", "lo"))
        yield made


@contextmanager
def serving(
    server: Namespace, scratch: Path, *entries: Entry, keepalive_requests: int | None = None
) -> Iterator[None]:
    """nginx for ``entries``, with this thread inside its namespace."""
    addresses = {host: (ADDRESSES[host],) for host in dict.fromkeys(e.host for e in entries)}
    archive = make_archive(*entries)
    listeners = lab_listeners(archive, addresses, "as-recorded")
    terms = ServerOptions(keepalive_requests)
    with serve(server, archive, listeners, scratch / "nginx", terms), server.entered():
        yield


def fetch(entry: Entry) -> Response:
    connection = Connection(ADDRESSES[entry.host], entry.host)
    try:
        return connection.get(entry.path)
    finally:
        connection.close()


BARE = natural_size(200, 0, make_entry().headers)
MOVED = (TYPE, LOCATION)
OWN = (TYPE, ("ETag", '"x"'), ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"))
ODD = (("content-type", 'text/html; charset="a\\b"'), ("X-A", 'it\'s \\ "quoted" {};# '))
TWICE = (TYPE, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))
# Every kind of response that a recording has: its path, its body, what else is not usual.
CASES: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "document": ("/", b"<p>hello" * 90, {}),
    "gzip": ("/a.css", gzip.compress(b"x" * 999),
             {"headers": (TYPE, ("Content-Encoding", "gzip"))}),
    "large": ("/b.png", bytes(300_000), {}), "empty": ("/empty", b"", {}),
    "no content": ("/204", b"", {"status": 204, "headers": ()}),
    "no content with a type": ("/204t", b"", {"status": 204}),
    "301 with a body": ("/301", b"<p>moved", {"status": 301, "headers": MOVED}),
    "301 without": ("/301e", b"", {"status": 301, "headers": MOVED}),
    "302 with a body": ("/302", b"<p>moved", {"status": 302, "headers": MOVED}),
    "302 without": ("/302e", b"", {"status": 302, "headers": MOVED}),
    "303": ("/303", b"", {"status": 303, "headers": MOVED}),
    "307": ("/307", b"", {"status": 307, "headers": MOVED}),
    "308": ("/308", b"", {"status": 308, "headers": MOVED}),
    "403": ("/403", b"no", {"status": 403}), "404 as recorded": ("/404", b"gone", {"status": 404}),
    "410": ("/410", b"", {"status": 410}), "500": ("/500", b"broken", {"status": 500}),
    "503": ("/503", b"", {"status": 503}), "no headers": ("/bare", b"x", {"headers": ()}),
    "not padded": ("/exact", b"", {"headers_size": BARE}),
    "least padding": ("/least", b"", {"headers_size": BARE + 14}),
    "huge header": ("/huge", b"x", {"headers_size": 9000}),
    "repeated header": ("/twice", b"", {"headers": TWICE}),
    "odd characters": ("/odd", b"", {"headers": ODD}),
    "validators": ("/own", b"", {"headers": OWN}), "query": ("/q?a=%20b&c=d//../e", b"with", {}),
    "other query": ("/q?a=1", b"other", {}),
    "partial": ("/206", b"part",
                {"status": 206, "headers": (TYPE, ("Content-Range", "bytes 4-7/99"))}),
    "not modified": ("/304", b"", {"status": 304}), "too many": ("/429", b"later", {"status": 429}),
    "a status without words": ("/451", b"no", {"status": 451}),
    "a status of nobody's": ("/999", b"no", {"status": 999}),
    "dollars": ("/$a?$b=${c}", b"$", {"headers": (TYPE, ("X-Cost", "$host ${uri} $"))}),
    "a long value": ("/long", b"x",
                     {"headers": (TYPE, ("X-L", '"$\\' * 2000)), "headers_size": 7000}),
    "bytes above ASCII": ("/latin", b"x", {"headers": (TYPE, ("X-L", "caf\xe9\tau lait"))}),
    "no value": ("/novalue", b"x", {"headers": (TYPE, ("X-Empty", ""))}),
    "a type twice": ("/types", b"x", {"headers": (TYPE, ("content-type", "a/b"))}),
    "a long URL": ("/" + "u" * 1700 + "?" + "q" * 1800, b"long", {}),
    "odd path": ("/a//b/../%7E;{x}'\"\\$d", b"odd", {}),
    "other host": ("/", b"other host", {"host": OTHER_HOST}),
}  # fmt: skip


Responses = dict[str, tuple[Entry, Response]]


@pytest.fixture(scope="module")
def responses(server: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Responses:
    """Each case with what nginx answered."""
    folder = tmp_path_factory.mktemp("site")
    entries = {
        name: make_entry(path, body, folder, **more) for name, (path, body, more) in CASES.items()
    }
    with serving(server, folder, *entries.values()):
        return {name: (entry, fetch(entry)) for name, entry in entries.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_are_those_recorded(responses: Responses, name: str) -> None:
    entry, response = responses[name]
    assert response.status == entry.status
    assert len(response.head) == entry.headers_size
    assert response.body == (entry.body.read_bytes() if entry.body else b"")
    sent = [line.split(": ", 1) for line in response.head.decode("latin-1").split("\r\n")[1:-2]]
    own = {"Server", "Date", "Content-Length", "Connection", "X-Padding"}
    recorded = [(n.lower(), v) for n, v in sent_headers(entry.headers)]
    assert sorted((n.lower(), v) for n, v in sent if n not in own) == sorted(recorded)
    assert response.headers["Connection"] == "keep-alive"


def test_what_was_not_recorded_is_a_visible_miss(server: Namespace, tmp_path: Path) -> None:
    page = make_entry("/page?a=1", b"x", tmp_path)
    with serving(server, tmp_path, page):
        for path in ("/", "/pag", "/page/", "//page", "/PAGE?a=1", "/page%3Fa=1", "/p%61ge?a=1"):
            response = fetch(make_entry(path))
            assert (response.status, response.headers.get("X-Replay")) == (404, "miss"), path
        assert "X-Replay" not in fetch(page).headers


def test_keepalive_requests_are_honoured(server: Namespace, tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with serving(server, tmp_path, page, keepalive_requests=3), ExitStack() as undo:
        connection = Connection(ADDRESSES[HOST])
        undo.callback(connection.close)
        answers = [connection.get("/").headers["Connection"] for _ in range(3)]
        assert answers == ["keep-alive", "keep-alive", "close"]
        assert connection.closed()


def test_without_a_limit_connections_stay(server: Namespace, tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with serving(server, tmp_path, page), ExitStack() as undo:
        connection = Connection(ADDRESSES[HOST])
        undo.callback(connection.close)
        answers = {connection.get("/").headers["Connection"] for _ in range(1500)}
        assert answers == {"keep-alive"}


def test_it_takes_a_request_in_the_syn(server: Namespace, tmp_path: Path) -> None:
    server.write_sysctls({"net.ipv4.tcp_fastopen": "519"})
    before = read_counters(server)
    with serving(server, tmp_path, make_entry("/", b"x", tmp_path)), socket.socket() as end:
        end.settimeout(10)
        request = f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
        end.sendto(request, socket.MSG_FASTOPEN, (ADDRESSES[HOST], 80))
        # Head and body in one piece: they left in one segment.
        assert end.recv(9999).endswith(b"\r\n\r\nx")
    assert difference(before, read_counters(server))["TcpExtTCPFastOpenPassive"] == 1


def test_an_address_that_it_cannot_have(server: Namespace, tmp_path: Path) -> None:
    archive = make_archive(make_entry())
    listeners = lab_listeners(archive, {HOST: ("10.10.0.9",)}, "as-recorded")
    with (
        pytest.raises(LabError, match=r"nginx is not ready: .*bind\(\) to 10\.10\.0\.9:80 failed"),
        serve(server, archive, listeners, tmp_path / "nginx", ServerOptions()),
    ):
        pytest.fail("it cannot listen there")


def test_nothing_runs_afterwards(server: Namespace, tmp_path: Path) -> None:
    with pytest.raises(KeyError), serving(server, tmp_path, make_entry("/", b"x", tmp_path)):
        raise KeyError
    assert proc.run(("ip", "netns", "pids", server.name)).stdout == ""
