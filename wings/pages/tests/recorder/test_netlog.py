"""The browser's network log, as it is and as it may be."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from wings.pages.recorder import RecordError
from wings.pages.recorder.netlog import read_netlog
from wings.pages.recorder.sockets import NetTransfer, plain_url

NAMES = ["URL_REQUEST_START_JOB", "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
         "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS", "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
         "URL_REQUEST_JOB_BYTES_READ", "URL_REQUEST_JOB_FILTERED_BYTES_READ",
         "URL_REQUEST_REDIRECTED", "CANCELLED", "REQUEST_ALIVE", "SOCKET_BYTES_RECEIVED",
         "SSL_SOCKET_BYTES_RECEIVED", "SSL_CONNECT", "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
         "SOCKET_POOL_BOUND_TO_SOCKET", "HTTP_TRANSACTION_SEND_REQUEST_BODY"]  # fmt: skip
TYPES = {name: number for number, name in enumerate(NAMES)}
SOURCES = {"URL_REQUEST": 1, "SOCKET": 10, "HTTP_STREAM_JOB": 17}
URL = "http://www.site.test/"


class Log:
    """A log under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self, name: str, source: int = 1, phase: int = 0, kind: str = "URL_REQUEST", **params: Any
    ) -> Log:
        event = {"type": TYPES[name], "source": {"id": source, "type": SOURCES[kind]}}
        time = str(1000 + len(self._lines))
        self._lines.append(json.dumps(event | {"phase": phase, "time": time, "params": params}))
        return self

    def start(self, url: str = URL, source: int = 1, method: str = "GET") -> Log:
        return self.add("URL_REQUEST_START_JOB", source, 1, url=url, method=method)

    def send(self, *headers: str, source: int = 1) -> Log:
        return self.add(NAMES[1], source, headers=list(headers), line="GET / HTTP/1.1\r\n")

    def answer(self, *lines: str, source: int = 1) -> Log:
        return self.add(NAMES[3], source, headers=list(lines))

    def data(self, name: str, data: bytes, source: int = 1, kind: str = "URL_REQUEST") -> Log:
        text = base64.b64encode(data).decode()
        return self.add(name, source, 0, kind, byte_count=len(data), bytes=text)

    def bind(self, socket: int, source: int = 1) -> Log:
        """The request's stream is a job, and the job's a socket."""
        self.add("HTTP_STREAM_REQUEST_BOUND_TO_JOB", source, source_dependency={"id": 100 + source})
        kind = "HTTP_STREAM_JOB"
        dependency = {"id": socket}
        return self.add(NAMES[13], 100 + source, 0, kind, source_dependency=dependency)

    def end(self, source: int = 1, **params: Any) -> Log:
        return self.add("REQUEST_ALIVE", source, 2, **params)

    def text(self) -> str:
        constants = {"constants": {"logEventTypes": TYPES, "logSourceType": SOURCES}}
        head = json.dumps(constants)[:-1] + ',\n"events": [\n'
        return head + ",\n".join(self._lines) + '],\n"polledData": [{}]}\n'


def read(log: Log, path: Path, **more: Any) -> tuple[NetTransfer, ...]:
    file = path / "net.json"
    file.write_text(log.text())
    found = read_netlog(file, **more)
    assert not found.cut
    return found.transfers


def test_without_a_filter_the_filtered_bytes_are_the_raw_ones(tmp_path: Path) -> None:
    log = Log().start().send("Host: a", "Content-Length: 7").answer("HTTP/1.1 200 OK", "A: b: c")
    log.data("URL_REQUEST_JOB_FILTERED_BYTES_READ", b"one")
    (found,) = read(log.data("URL_REQUEST_JOB_FILTERED_BYTES_READ", b"two").end(), tmp_path)
    assert (found.status, found.headers, found.body) == (200, (("A", "b: c"),), b"onetwo")
    assert (found.request_body_size, found.received_bytes, found.decoded_size) == (7, 6, 6)
    assert (found.start_s, found.cut, found.position) == (1.0, False, 0)


def test_with_a_filter_the_raw_bytes_are_kept(tmp_path: Path) -> None:
    log = Log().start().send().answer("HTTP/1.1 200 OK", "Content-Encoding: br")
    log.data("URL_REQUEST_JOB_BYTES_READ", b"ab")
    (found,) = read(log.data("URL_REQUEST_JOB_FILTERED_BYTES_READ", b"aaaa").end(), tmp_path)
    assert (found.body, found.decoded_size) == (b"ab", 4)


def test_pseudo_headers_and_protocol(tmp_path: Path) -> None:
    log = Log().start().add(NAMES[2], headers=[":method: GET", "accept: */*"])
    (found,) = read(log.answer("HTTP/1.1 204").end(), tmp_path)
    assert found.protocol == "h2"
    assert found.request_headers == (("accept", "*/*"),)
    assert found.head is None


def test_lines_that_are_not_ascii(tmp_path: Path) -> None:
    escaped = ("%ESCAPED:\u200b HTTP/1.1 200 tr%C3%A8s", "%ESCAPED:\u200b A: 100%25 caf%E9",
               "B: 100%25")  # fmt: skip
    (found,) = read(Log().start().send().answer(*escaped).end(), tmp_path)
    assert (found.status, found.headers) == (200, (("A", "100% caf\xe9"), ("B", "100%25")))


def test_a_second_answer_to_one_request_is_a_transfer_of_its_own(tmp_path: Path) -> None:
    log = Log().start().send().answer("HTTP/1.1 401 No").send().answer("HTTP/1.1 200 OK").end()
    assert [found.status for found in read(log, tmp_path)] == [401, 200]


def test_a_lost_connection_is_no_transfer_of_its_own(tmp_path: Path) -> None:
    log = Log().start().send().send().answer("HTTP/1.1 200 OK").end()
    (found,) = read(log, tmp_path)
    assert (found.status, found.position) == (200, 1)


@pytest.mark.parametrize(
    ("lines", "received", "body", "size"),
    [
        (b"Content-Length: 3\r\n", b"abc", b"abc", 3),
        (b"Content-Length: 9\r\n", b"abc", None, 9),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n", b"abc", 3),
        (b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n", None, 2),
        (b"Transfer-Encoding: chunked\r\n", b"what\r\n", None, 0),
        (b"", b"abc", b"abc", 3),
    ],
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_a_redirect_has_its_body_from_the_socket(
    tmp_path: Path, lines: bytes, received: bytes, body: bytes | None, size: int, encrypted: bool
) -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation:/b\r\n" + lines + b"\r\n"
    log = Log().start().bind(7)
    if encrypted:
        log.add("SSL_CONNECT", 7, 1, "SOCKET")
    log.send()
    if encrypted:
        log.data("SOCKET_BYTES_RECEIVED", b"\x17\x03\x03 cipher", 7, "SOCKET")
    name = "SSL_SOCKET_BYTES_RECEIVED" if encrypted else "SOCKET_BYTES_RECEIVED"
    log.data(name, b"HTTP/1.1 103 Early Hints\r\n\r\n" + head[:9], 7, "SOCKET")
    log.data(name, head[9:] + received[:2], 7, "SOCKET")
    log.answer("HTTP/1.1 302 Found", "Location: /b").add("URL_REQUEST_REDIRECTED", location="/b")
    log.start(URL + "b")
    log.data(name, received[2:], 7, "SOCKET")
    first, second = read(log.send().answer("HTTP/1.1 200 OK").end(), tmp_path)
    assert (first.head, first.body, first.received_bytes) == (head, body, size)
    assert (second.url, second.position) == (URL + "b", 1)


def test_bodies_beyond_the_bound_are_counted_only(tmp_path: Path) -> None:
    log = Log()
    for source, size in ((1, 60), (2, 60), (3, 40)):
        log.start(source=source).send(source=source).answer("HTTP/1.1 200 OK", source=source)
        log.data("URL_REQUEST_JOB_FILTERED_BYTES_READ", b"x" * size, source).end(source)
    found = read(log, tmp_path, most_body_bytes=100)
    assert [one.body and len(one.body) for one in found] == [60, None, 40]
    assert found[1].received_bytes == 60


def test_cancelled_and_failed(tmp_path: Path) -> None:
    log = Log().start().send().add("CANCELLED").end()
    log.start(source=2).end(2, net_error=-105)
    cancelled, failed = read(log, tmp_path)
    assert (cancelled.cancelled, cancelled.status) == (True, None)
    assert (failed.error, failed.position) == (-105, None)


def test_only_pages_of_the_web(tmp_path: Path) -> None:
    assert not read(Log().start("data:,x").end().start("ws://a/", 2).end(2), tmp_path)


def test_a_log_without_an_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = Log().start().send().answer("HTTP/1.1 200 OK", "Content-Length: 4").end().text()
    file = tmp_path / "net.json"
    file.write_text(whole[:-60])
    found = read_netlog(file)
    assert found.cut
    assert found.transfers[0].cut


@pytest.mark.parametrize(
    "text", ["", "{}", "\x00\xff", '{"constants":{}},\n"events": [\n', '{"constants":1,\n']
)
def test_what_is_no_log(tmp_path: Path, text: str) -> None:
    (tmp_path / "net.json").write_text(text)
    with pytest.raises(RecordError, match=r"net\.json"):
        read_netlog(tmp_path / "net.json")


def test_no_log_at_all(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no network log"):
        read_netlog(tmp_path / "net.json")


def test_urls_without_fragment_and_user() -> None:
    assert plain_url("http://me:pw@a.test/b@c?d#e") == "http://a.test/b@c?d"
    assert plain_url("https://a.test") == "https://a.test"


def test_what_comes_behind_the_mark_is_not_read(tmp_path: Path) -> None:
    """A browser that ends on a busy machine tears its last lines, or has none."""
    file = tmp_path / "net.json"
    log = Log().start().send().answer("HTTP/1.1 200 OK")
    marked = log.text().partition('],\n"polledData"')[0] + ',\n{"params": {"name": "the mark"}},\n'
    for torn in ("", '{"a": 1}{"b": 2},\n', '{"a": '):
        file.write_text(marked + torn)
        found = read_netlog(file, "the mark")
        assert (found.cut, len(found.transfers), found.transfers[0].status) == (False, 1, 200)
    file.write_text(log.text().partition('],\n"polledData"')[0] + ",\n")
    assert read_netlog(file, "the mark").cut
