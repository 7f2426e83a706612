"""The real nginx on loopback: methods, bodies, ports, and what its own reading refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.archive.head import REASONS, natural_size, request_problem
from testbed.archive.posted import digest_body
from testbed.base.errors import ConfigurationError
from testbed.model import Substitution
from testbed.server.listeners import Listener, lab_listeners
from testbed.server.nginx import ServerOptions
from tests.server.pages import HOST, OTHER_HOST, make_archive, make_entry, on_loopback


def test_nginx_says_each_status_as_we_count_it(tmp_path: Path) -> None:
    entries = [make_entry(f"/{status}", status=status, headers_size=None) for status in REASONS]
    with on_loopback(tmp_path, *entries) as site, site.connected() as connection:
        for entry in entries:
            response = connection.get(entry.path)
            line = response.head.split(b"\r\n")[0].decode()
            assert line == f"HTTP/1.1 {entry.status} {REASONS[entry.status]}"
            assert len(response.head) == natural_size(entry.status, 0, entry.headers)
            assert response.headers["Connection"] == "keep-alive"


PATHS = st.lists(
    st.sampled_from(
        ["/", "/", "..", ".", "a", "%", "%2", "%41", "%2e", "%2F", "%00", "?", "#", "\\"]
    ),
    max_size=8,
).map(lambda parts: "/" + "".join(parts))


@settings(max_examples=8)
@given(paths=st.lists(PATHS, min_size=1, max_size=40))
def test_nginx_refuses_the_paths_that_we_refuse(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("paths")
    good = [path for path in paths if request_problem("GET", HOST, path) is None]
    entries = [make_entry(path, b"%d" % i, folder) for i, path in enumerate(good)]
    with on_loopback(folder, make_entry("/root"), *entries) as site:
        for path in paths:
            with site.connected() as connection:
                status = connection.get(path).status
                assert status == (200 if path in good else 400), path


def test_head_is_answered_as_get_is(tmp_path: Path) -> None:
    with (
        on_loopback(tmp_path, make_entry("/a", b"12345", tmp_path)) as site,
        site.connected() as connection,
    ):
        head, full = connection.ask("HEAD", "/a"), connection.get("/a")
        without_date = [re.sub(rb"\r\nDate: [^\r]*", b"", each.head) for each in (head, full)]
        assert without_date[0] == without_date[1]
        assert head.body == b""
    assert site.replay().exact == 2


def test_a_recorded_head_is_not_the_answer_to_a_get(tmp_path: Path) -> None:
    entries = (make_entry("/a", method="HEAD"), make_entry("/a", b"12345", tmp_path),
               make_entry("/b", b"123", tmp_path))  # fmt: skip
    with on_loopback(tmp_path, *entries) as site, site.connected() as connection:
        assert connection.get("/a").body == b"12345"
        assert connection.ask("HEAD", "/a").headers["Content-Length"] == "0"
        assert connection.ask("HEAD", "/b").headers["Content-Length"] == "3"


def test_equal_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    entries = [make_entry("/a", body, tmp_path) for body in (b"one", b"two")]
    with on_loopback(tmp_path, *entries) as site, site.connected() as connection:
        assert [connection.get("/a").body for _ in range(2)] == [b"one", b"two"]
    assert site.replay().exact == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X-OWN_METHOD"])
def test_other_methods_are_answered_by_body(tmp_path: Path, method: str) -> None:
    bodiless = [
        make_entry("/a", b"get", tmp_path),
        make_entry("/a", b"none", tmp_path, method=method, request_body_size=0),
        make_entry("/a", b"five", tmp_path, method=method, request_body_size=5),
        make_entry("/a", b"large", tmp_path, method=method, request_body_size=3_000_000),
        make_entry("/a", b"moved", tmp_path, method=method, request_body_size=7, status=308),
    ]
    sizes = [entry.request_body_size for entry in bodiless]
    posted = [digest_body(b"x" * size, "") if size else None for size in sizes]
    entries = [replace(e, posted=p) for e, p in zip(bodiless, posted, strict=True)]
    with on_loopback(tmp_path, *entries) as site, site.connected() as connection:
        for entry in entries:
            response = connection.ask(entry.method, "/a", b"x" * entry.request_body_size)
            assert entry.body is not None
            assert (response.status, response.body) == (entry.status, entry.body.read_bytes())
            assert len(response.head) == entry.headers_size
        assert connection.ask(method, "/a", b"x" * 6).body == b"none"
        # The connection is as good as before.
        assert connection.get("/a").body == b"get"
    replay = site.replay()
    line = f"{method} http://{HOST}/a"
    assert (replay.exact, replay.inexact, replay.missed) == (6, (Substitution(line, line),), ())


def test_the_answer_waits_for_the_whole_request(tmp_path: Path) -> None:
    entry = make_entry("/a", b"done", tmp_path, method="POST", request_body_size=5)
    with on_loopback(tmp_path, entry) as site, site.connected() as connection:
        head = f"POST /a HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5\r\n\r\n"
        connection.send(head.encode() + b"1234")
        connection.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.receive()
        connection.socket.settimeout(10)
        connection.send(b"5")
        assert connection.receive().body == b"done"


def test_origins_of_one_host_are_apart(tmp_path: Path) -> None:
    entries = (make_entry("/a", b"one", tmp_path), make_entry("/a", b"two", tmp_path, port=8080),
               make_entry("/b", b"only there", tmp_path, port=8080))  # fmt: skip
    with on_loopback(tmp_path, *entries) as site:
        with site.connected(port=80) as connection:
            assert connection.get("/a").body == b"one"
            assert connection.get("/b").headers["X-Replay"] == "miss"
        with site.connected(port=8080) as connection:
            assert connection.get("/a").body == b"two"
            response = connection.ask("GET", "/b", host=f"{HOST}:8080")
            assert response.body == b"only there"
    replay = site.replay()
    assert (replay.exact, replay.missed) == (3, (f"GET http://{HOST}/b",))


def test_an_inexact_answer_is_reported(tmp_path: Path) -> None:
    page = make_entry("/p?a=1", b"x", tmp_path)
    with on_loopback(tmp_path, page) as site, site.connected() as connection:
        response = connection.get("/p?a=2")
        assert len(response.head) == page.headers_size
        assert "X-Replay" not in response.headers
    (reported,) = site.replay().inexact
    assert (reported.asked, reported.answered) == (f"GET http://{HOST}/p?a=2", f"GET {page.url}")


def test_a_folder_with_any_name(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s "odd"; $uri {é}\\'
    folder.mkdir()
    with on_loopback(folder, make_entry("/", b"x", folder)) as site, site.connected() as connection:
        assert connection.get("/").body == b"x"
    assert site.replay().exact == 1


def test_the_log_is_one_json_object_a_line(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with on_loopback(tmp_path, page) as site, site.connected() as connection:
        response = connection.get("/")
    (line,) = (site.scratch / "access.log").read_text("ascii").splitlines()
    seen = json.loads(line)
    assert seen["match"] == "exact"
    assert (seen["status"], seen["bytes"]) == (200, len(response.head) + 1)
    assert (seen["number"], seen["answer"]) == (1, "//0")


def test_a_buffered_log_is_written_at_the_end_and_another_at_once(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    for buffered in (True, False):
        folder = tmp_path / str(buffered)
        folder.mkdir()
        with on_loopback(folder, page, terms=ServerOptions(buffered_log=buffered)) as site:
            with site.connected() as connection:
                connection.get("/")
            assert site.replay().exact == (0 if buffered else 1)
        assert site.replay().exact == 1


def test_listeners_of_a_page() -> None:
    archive = make_archive(make_entry("/", scheme="https"),
                           make_entry("/h2", scheme="https", protocol="h2"),
                           make_entry("/", host=OTHER_HOST, port=8080),
                           make_entry("/", host=OTHER_HOST, scheme="https"))  # fmt: skip
    addresses = {HOST: ("10.10.0.1",), OTHER_HOST: ("10.10.0.2",)}
    plain = (Listener(HOST, ("10.10.0.1",), 80, False, False),
             Listener(OTHER_HOST, ("10.10.0.2",), 80, False, False))  # fmt: skip
    for protocol, first, second in (
        ("as-recorded", True, False), ("h1", False, False), ("h2", True, True),
    ):  # fmt: skip
        assert lab_listeners(archive, addresses, protocol) == (
            *plain,
            Listener(HOST, ("10.10.0.1",), 443, True, first),
            Listener(OTHER_HOST, ("10.10.0.2",), 8080, False, False),
            Listener(OTHER_HOST, ("10.10.0.2",), 443, True, second),
        )


def test_listeners_that_cannot_be() -> None:
    both = make_archive(make_entry("/", port=443), make_entry("/", scheme="https"))
    with pytest.raises(ConfigurationError, match="port 443 has both http and https"):
        lab_listeners(both, {HOST: ("10.10.0.1",)}, "h1")
    with pytest.raises(ConfigurationError, match=rf"{HOST}: has no address"):
        lab_listeners(both, {}, "h1")


def test_a_revalidation_is_answered_with_its_own(tmp_path: Path) -> None:
    long = "/" + "x" * 600
    entries = [make_entry("/a?b=1", b"whole", tmp_path, headers=(("ETag", '"1"'),)),
               make_entry("/a?b=1", b"", tmp_path, status=304, headers=(("ETag", '"1"'),)),
               make_entry(long, b"long", tmp_path), make_entry(long, b"", tmp_path, status=304),
               make_entry("/other", b"other", tmp_path),
               make_entry("/only", b"", tmp_path, status=304)]  # fmt: skip
    condition = 'If-None-Match: "1"'
    with on_loopback(tmp_path, *entries) as site, site.connected() as connection:

        def status(path: str, *headers: str) -> int:
            lines = (f"GET {path} HTTP/1.1", f"Host: {HOST}", *headers, "", "")
            connection.send("\r\n".join(lines).encode())
            return connection.receive().status

        assert [status("/a?b=1"), status("/a?b=1", condition)] == [200, 304]
        assert status("/a?b=1", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT") == 304
        assert [status(long), status(long, condition)] == [200, 304]
        assert [status("/other", condition), status("/a?b=2", condition)] == [200, 200]
        assert [status("/only"), status("/only", condition)] == [304, 304]
        assert status("/none", condition) == 404
    replay = site.replay()
    assert (replay.exact, len(replay.inexact), len(replay.missed)) == (8, 1, 1)
