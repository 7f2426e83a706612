"""A server that thinks: every answer is as without, only later, and no two requests wait alike."""

from __future__ import annotations

import select
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.archive.posted import digest_body
from testbed.archive.reading import Entry
from testbed.base import proc
from testbed.base.errors import MissingError
from testbed.model import Condition, Replay
from testbed.pages.authority import make_authority
from testbed.server import think as thinking
from testbed.server.listeners import lab_listeners
from testbed.server.nginx import ServerOptions, configuration, serve
from testbed.server.think import Think, think_of
from tests.server.pages import HOST, OTHER_HOST, make_archive, make_entry, on_loopback

SHORT = ServerOptions(think=Think(3.0, 50.0, 1))
MOVED = (("Content-Type", "text/html"), ("Location", "/a?b=1"))
ASKED = (
    *(("GET", "/", b""), ("HEAD", "/", b""), ("GET", "/a?b=1", b""), ("GET", "/a?b=2", b"")),
    *(("GET", "/gone", b""), ("GET", "/moved", b""), ("GET", "/none", b"")),
    *(("POST", "/", b"12345"), ("POST", "/", b"large" * 400_000), ("PUT", "/up", b"1")),
    *(("GET", "/miss", b""), ("POST", "/miss", b"body"), ("HEAD", "/miss", b"")),
    *(("GET", "/a?" + "q" * 900, b""), ("GET", "/large", b"")),
)


def test_hosts_and_recorded_requests_have_waits_of_their_own() -> None:
    condition = Condition("p", "chromium", think_by_host="a.test 200, b.test 0.4")
    think = think_of(condition, 1, list)  # type: ignore[arg-type]
    assert think is not None and think.longest_ms == 200.0
    waits = [think.of(host).delay_ms("GET /") for host in ("a.test", "b.test", "c.test")]
    assert waits == [200, 1, 0]
    assert "echo_sleep" not in think.of("c.test").directives("GET /", "/x")
    recorded = Think(0.0, by_host={"a.test": 7.0}, recorded={"GET http://b.test/": 31_000.0})
    assert recorded.of("b.test").delay_ms("GET http://b.test/") == 31_000
    assert recorded.of("b.test").delay_ms("miss") == 0
    assert recorded.of("a.test").delay_ms("GET http://b.test/") == 7
    assert think_of(Condition("p", "graph"), 1, list) is None  # type: ignore[arg-type]


def make_entries(folder: Path) -> list[Entry]:
    return [make_entry("/", b"root", folder), make_entry("/a?b=1", b"query", folder),
            make_entry("/a?" + "q" * 700, b"long", folder),
            make_entry("/gone", b"gone", folder, status=404),
            make_entry("/moved", b"", folder, status=301, headers=MOVED),
            make_entry("/none", b"", folder, status=204, headers=()),
            make_entry("/large", bytes(300_000), folder),
            make_entry("/", b"five", folder, method="POST", request_body_size=5),
            make_entry("/", b"two million", folder, method="POST", request_body_size=2_000_000),
            make_entry("/up", b"put", folder, method="PUT", request_body_size=1)]  # fmt: skip


def ask_all(folder: Path, terms: ServerOptions) -> tuple[list[tuple[bytes, bytes]], Replay]:
    """Head (but its date) and body of every answer over one connection, and the coverage."""
    folder.mkdir()
    with (
        on_loopback(folder, *make_entries(folder), terms=terms) as site,
        site.connected() as connection,
    ):
        seen = [connection.ask(*asked) for asked in ASKED]
    plain = [
        (b"\n".join(x for x in each.head.splitlines() if not x.startswith(b"Date:")), each.body)
        for each in seen
    ]
    return plain, site.replay()


def test_answers_and_coverage_are_as_without(tmp_path: Path) -> None:
    assert ask_all(tmp_path / "thinks", SHORT) == ask_all(tmp_path / "does not", ServerOptions())


def test_requests_that_came_at_once_are_answered_in_their_order(tmp_path: Path) -> None:
    pages = [make_entry(f"/{i}", b"%d" % i, tmp_path) for i in range(5)]
    with on_loopback(tmp_path, *pages, terms=SHORT) as site, site.connected() as connection:
        asked = (f"GET /{i} HTTP/1.1\r\nHost: {HOST}\r\n\r\n" for i in range(5))
        connection.send("".join(asked).encode())
        assert [connection.receive().body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert site.replay().exact == 5


def test_it_waits_and_meanwhile_serves_others_and_primes_at_once(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with (
        on_loopback(tmp_path, page, terms=ServerOptions(think=Think(5000.0))) as site,
        site.connected() as slow,
    ):
        slow.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        with site.connected() as other:
            assert other.ask("HEAD", "/", host="prime").status == 404
        assert select.select([slow.socket], [], [], 0) == ([], [], [])
        assert slow.receive().body == b"x"


def test_it_thinks_once_the_whole_request_has_come(tmp_path: Path) -> None:
    entry = make_entry("/a", b"done", tmp_path, method="POST", request_body_size=5)
    with (
        on_loopback(tmp_path, entry, terms=ServerOptions(think=Think(1.0))) as site,
        site.connected() as connection,
    ):
        head = f"POST /a HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5\r\n\r\n"
        connection.send(head.encode() + b"1234")
        assert select.select([connection.socket], [], [], 0.1) == ([], [], [])
        connection.send(b"5")
        assert connection.receive().body == b"done"


def test_requests_per_connection_hold(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    terms = ServerOptions(2, think=Think(1.0))
    with on_loopback(tmp_path, page, terms=terms) as site, site.connected() as connection:
        answers = [connection.get("/").headers["Connection"] for _ in range(2)]
        assert answers == ["keep-alive", "close"]
        assert connection.closed()


def test_over_h2_all_streams_think_side_by_side(tmp_path: Path) -> None:
    tls = tmp_path / "tls"
    tls.mkdir()
    for name, content in make_authority((HOST,)).items():
        (tls / name).write_bytes(content)
    more = {"scheme": "https", "protocol": "h2", "headers_size": None}
    pages = [make_entry(f"/{i}", b"%d" % i * 50_000, tmp_path, **more) for i in range(5)]
    posted = digest_body(b"1234", "")
    sent = {"method": "POST", "request_body_size": 4, "posted": posted}
    post = make_entry("/p", b"posted", tmp_path, **sent, **more)
    terms = ServerOptions(tls=tls, think=Think(5.0))
    with on_loopback(tmp_path, *pages, post, terms=terms) as site:
        (secure,) = (each for each in site.listeners if each.tls)
        curl = (*("curl", "--silent", "--show-error", "--cacert", str(tls / "authority.pem")),
                *("--connect-to", f"{HOST}:443:{secure.sockets[0]}"))  # fmt: skip
        said = proc.run((*curl, "--parallel", f"https://{HOST}/[0-4]")).stdout
        assert sorted(said) == sorted("".join(str(i) * 50_000 for i in range(5)))
        assert proc.run((*curl, "--data", "1234", f"https://{HOST}/p")).stdout == "posted"
        head = proc.run((*curl, "--head", f"https://{HOST}/1")).stdout
        assert head.startswith("HTTP/2 200") and "content-length: 50000" in head
        assert "x-replay: miss" in proc.run((*curl, "--include", f"https://{HOST}/no")).stdout
    replay = site.replay()
    assert (replay.exact, replay.missed) == (7, (f"GET https://{HOST}/no",))
    assert replay.protocols == {f"https://{HOST} HTTP/2.0": 8}


def test_a_client_that_leaves_in_the_middle_does_no_harm(tmp_path: Path) -> None:
    page = make_entry("/", b"x", tmp_path)
    with on_loopback(tmp_path, page, terms=ServerOptions(think=Think(200.0))) as site:
        with site.connected() as connection:
            connection.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        with site.connected() as connection:
            assert connection.get("/").body == b"x"


def test_without_a_think_time_nothing_of_it_is_written() -> None:
    archive = make_archive(make_entry("/"), make_entry("/a?b", host=OTHER_HOST))
    listeners = lab_listeners(archive, {HOST: ("10.10.0.1",), OTHER_HOST: ("10.10.0.2",)}, "h1")
    plain = configuration(archive, listeners, ServerOptions())
    assert "echo" not in plain and "module" not in plain and "thought" not in plain
    thinks = configuration(archive, listeners, ServerOptions(think=Think(50.0)))
    assert thinks.startswith('load_module "/usr/lib/nginx/modules/ngx_http_echo_module.so";\n')
    assert thinks.count("echo_sleep 0.050;") == plain.count("return 404") + plain.count("418;")


def test_without_the_module_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinking, "MODULE", "lib/none.so")
    archive = make_archive(make_entry("/"))
    with (
        pytest.raises(MissingError, match=r"none\.so: install the package libnginx-mod-http-echo"),
        serve(None, archive, (), tmp_path / "nginx", ServerOptions(think=Think(1.0))),
    ):
        pytest.fail("it cannot think")


@given(
    mean=st.floats(0.001, 60_000),
    spread=st.floats(0, 100),
    request=st.text(st.characters(codec="utf-8")),
)
def test_delays_are_whole_and_within_the_spread(mean: float, spread: float, request: str) -> None:
    delay = Think(mean, spread, 3).delay_ms(request)
    assert delay >= 1
    assert mean * (1 - spread / 100) - 1 <= delay <= mean * (1 + spread / 100) + 1


def test_delays_differ_by_request_and_by_seed() -> None:
    urls = [f"GET http://{HOST}/{i}" for i in range(50)]
    first, second = ([Think(1000.0, 50.0, seed).delay_ms(url) for url in urls] for seed in (1, 2))
    assert len(set(first)) > 40
    assert first != second
    assert {Think(50.0, 0.0, seed).delay_ms(url) for url in urls for seed in (1, 2)} == {50}
