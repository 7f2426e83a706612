"""What an access log adds up to, whatever clients asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.model import Substitution
from testbed.server.replay_log import parse_replay
from tests.server.pages import HOST, Connection, make_entry, on_loopback

ANSWERS = {"//0": "GET http://a.test/", "//1": "POST http://a.test/p?x=1"}


def line(**changes: Any) -> bytes:
    seen = {"match": "exact", "request": "GET / HTTP/1.1", "scheme": "http", "host": "a.test",
            "uri": "/", "answer": "//0", "status": 200, "bytes": 300, "body": 100, "complete": "OK",
            "connection": "7", "number": 1, "upgrade": "", "client": "10.0.0.2:40000",
            "server": "10.10.0.1:80", "asked": "keep-alive", "resumed": "", "group": "",
            "early": ""}  # fmt: skip
    return json.dumps(seen | changes).encode() + b"\n"


def test_requests_are_counted_by_their_match() -> None:
    inexact = {"match": "inexact", "request": "POST /p?x=2 HTTP/1.1", "uri": "/p?x=2"}
    missed = {"match": "miss", "request": "HEAD /q HTTP/1.1", "uri": "/q", "answer": "//GET:a/q"}
    replay = parse_replay(
        line() + line(answer="//1", **inexact) + line(connection="8", **missed), ANSWERS
    )
    assert replay.exact == 1
    assert replay.inexact == (Substitution("POST http://a.test/p?x=2", ANSWERS["//1"]),)
    assert replay.missed == ("HEAD http://a.test/q",)
    assert replay.most_per_connection == 2
    assert replay.protocols == {"http://a.test HTTP/1.1": 3}


def test_a_websocket_is_no_request() -> None:
    asked = {"match": "miss", "request": "GET /chat HTTP/1.1", "uri": "/chat", "scheme": "https"}
    replay = parse_replay(line() + line(upgrade="WebSocket", connection="8", **asked), ANSWERS)
    assert (replay.exact, replay.missed, replay.sockets) == (1, (), ("wss://a.test/chat",))
    assert replay.protocols == {"http://a.test HTTP/1.1": 1}
    assert parse_replay(line(upgrade="h2c", **asked), ANSWERS).sockets == ()


def test_no_requests_are_no_coverage() -> None:
    assert parse_replay(b"", ANSWERS) == parse_replay(line(request="", match=""), ANSWERS)


def test_what_nginx_refused_is_missed() -> None:
    said = "GARBAGE %16"
    assert parse_replay(line(match="", request="GARBAGE \x16", uri=""), {}).missed == (said,)


@given(log=st.binary(max_size=200))
def test_any_bytes_are_read(log: bytes) -> None:
    replay = parse_replay(log, ANSWERS)
    assert replay.exact == 0
    assert all(text.isascii() and text.isprintable() for text in replay.missed)


@given(lines=st.lists(st.text(max_size=20), max_size=5))
def test_any_urls_are_read(lines: list[str]) -> None:
    log = b"".join(line(match="miss", uri=f"/{text}") for text in lines)
    assert len(parse_replay(log, ANSWERS).missed) == len(lines)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b"GET /\xff\xc3\xa9 HTTP/1.1", f"GET http://{HOST}/%FF%C3%A9"),
     (b"GET /\"a\\b{}$uri;' HTTP/1.1", f"GET http://{HOST}/\"a\\b{{}}$uri;'"),
     (b"GET /a//../b%41?%00 HTTP/1.1", f"GET http://{HOST}/a//../b%41?%00"),
     (b"GET //0 HTTP/1.1", f"GET http://{HOST}//0"),
     (b"GET //GET:www.page.test/ HTTP/1.1", f"GET http://{HOST}//GET:www.page.test/"),
     (b"GET /%2f0 HTTP/1.1", f"GET http://{HOST}/%2f0"),
     (b"DELETE / HTTP/1.1", f"DELETE http://{HOST}/")],
)  # fmt: skip
def test_hostile_requests_are_misses_and_are_reported(
    tmp_path: Path, raw: bytes, shown: str
) -> None:
    page = make_entry("/", b"x", tmp_path)
    with on_loopback(tmp_path, page) as site, site.connected() as connection:
        connection.send(raw + f"\r\nHost: {HOST}\r\n\r\n".encode())
        response = connection.receive()
        assert (response.status, response.headers["X-Replay"]) == (404, "miss")
    assert site.replay().missed == (shown,)


@pytest.mark.parametrize("raw", [b"GET /../x HTTP/1.1", b"GET /%00 HTTP/1.1", b"\x16\x03\x01"])
def test_what_is_no_request_is_a_miss(tmp_path: Path, raw: bytes) -> None:
    page = make_entry("/", b"x", tmp_path)
    with on_loopback(tmp_path, page) as site, site.connected() as connection:
        connection.send(raw + f"\r\nHost: {HOST}\r\n\r\n".encode())
        assert connection.receive().status == 400
    assert site.replay().exact == 0
    assert len(site.replay().missed) == 1


def test_another_host_is_a_miss_and_priming_is_nothing(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with on_loopback(tmp_path, page) as site, site.connected() as connection:
        assert connection.ask("HEAD", "/", host="prime").status == 404
        assert connection.ask("GET", "/", host="other.test").headers["X-Replay"] == "miss"
        assert connection.ask("GET", "/", host=HOST.upper()).status == 200
    replay = site.replay()
    assert (replay.exact, replay.missed) == (1, ("GET http://other.test/",))
    assert replay.most_per_connection == 2


def test_an_idle_connection_is_no_request(tmp_path: Path) -> None:
    with on_loopback(tmp_path, make_entry("/", b"x", tmp_path)) as site, site.connected() as idle:
        assert isinstance(idle, Connection)
    assert site.replay().most_per_connection == 0
