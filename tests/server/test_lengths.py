"""Lengths of what a real nginx serves, and who wanted the end of a connection."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.archive.reading import Entry
from testbed.model import PageLoad, RequestTiming, ServedConnection
from testbed.server.lengths import check_lengths, list_connections
from testbed.server.nginx import ServerOptions
from testbed.server.replay_log import LoggedAnswer, parse_answered, read_answered
from tests.server.pages import HOST, make_entry, on_loopback

SILENT = PageLoad("chromium", "1", 1.0, ())
URL = f"http://{HOST}/a"
ENTRY = make_entry("/a", bytes(1000))
SENT = LoggedAnswer(
    request=f"GET {URL}", entry=ENTRY, protocol="HTTP/1.1", sent_bytes=1300, body_bytes=1000,
    complete=True, asked_close=False, connection="1", client="10.0.0.2:40000",
    server="10.10.0.1:80",
)  # fmt: skip


def received(transfer_bytes: int | None, status: int = 200, url: str = URL) -> PageLoad:
    return replace(SILENT, requests=(RequestTiming(url, status, 0.0, 1.0, transfer_bytes),))


def page(folder: Path) -> tuple[Entry, ...]:
    """Responses of every kind that lengths are reported apart by."""
    html, moved = (("Content-Type", "text/html"),), (("Location", "/a"), ("Cache-Control", "no"))
    return (make_entry("/a", b"a" * 1000, folder),
            make_entry("/natural", b"b" * 300, folder, headers_size=None, headers=html),
            make_entry("/moved", b"c" * 65, folder, status=302, headers=moved, headers_size=None),
            make_entry("/none", status=204, headers=(), headers_size=None),
            make_entry("/same", status=304, headers=(), headers_size=None, body_size=500),
            make_entry("/empty"),
            make_entry("/post", b"d" * 20, folder, method="POST", request_body_size=3),
            make_entry("/broken", b"e" * 50, folder, status=500))  # fmt: skip


@pytest.mark.parametrize("limit", [None, 1, 3])
def test_what_nginx_serves_is_as_recorded(tmp_path: Path, limit: int | None) -> None:
    entries = page(tmp_path)
    with on_loopback(tmp_path, *entries, terms=ServerOptions(keepalive_requests=limit)) as site:
        for number in range(0, len(entries), limit or len(entries)):
            with site.connected() as connection:
                for entry in entries[number : number + (limit or len(entries))]:
                    body = bytes(entry.request_body_size)
                    connection.ask(entry.method, entry.path, body)
        with site.connected() as connection:
            connection.ask("HEAD", "/a")
    answered = read_answered(site.scratch, entries)
    assert len(answered) == len(entries) + 1
    assert check_lengths(answered, SILENT) == ()
    kept = list_connections(answered)
    assert [one.requests for one in kept[:-1]] == {None: [8], 1: [1] * 8, 3: [3, 3, 2]}[limit]
    assert [one.announced_close for one in kept] == [one.requests == limit for one in kept]
    assert not any(one.asked_close or one.missed for one in kept)


@pytest.mark.parametrize(("size", "problems"), [(1000, 0), (999, 1), (500, 1), (0, 1)])
def test_a_body_that_was_cut_on_disk(tmp_path: Path, size: int, problems: int) -> None:
    entry = make_entry("/a", b"a" * 1000, tmp_path)
    assert entry.body is not None
    entry.body.write_bytes(bytes(size))
    with on_loopback(tmp_path, entry) as site, site.connected() as connection:
        connection.get("/a")
    found = check_lengths(read_answered(site.scratch, (entry,)), SILENT)
    reported = f"the first GET {URL}: {size} bytes instead of 1000"
    assert [one for one in found if one.startswith("1 bodies")] == [
        f"1 bodies were not sent as recorded, {reported}"
    ] * problems


@pytest.mark.parametrize(
    ("head", "asked_close"),
    [("HTTP/1.1\r\nConnection: keep-alive", False), ("HTTP/1.1\r\nConnection: TE, Close", True),
     ("HTTP/1.0", True), ("HTTP/1.0\r\nConnection: keep-alive", False)],
)  # fmt: skip
def test_the_client_s_word_about_the_connection(
    tmp_path: Path, head: str, asked_close: bool
) -> None:
    entry = make_entry("/a", b"a", tmp_path)
    with on_loopback(tmp_path, entry) as site, site.connected() as connection:
        connection.send(f"GET /a {head}\r\nHost: {HOST}\r\n\r\n".encode())
        assert connection.receive().status == 200
    answered = read_answered(site.scratch, (entry,))
    (kept,) = list_connections(answered)
    assert (kept.asked_close, kept.announced_close) == (asked_close, asked_close)
    assert check_lengths(answered, SILENT) == ()


def test_ends_and_misses(tmp_path: Path) -> None:
    entry = make_entry("/a", b"a", tmp_path)
    with on_loopback(tmp_path, entry) as site, site.connected() as connection:
        local, port = connection.socket.getsockname()[1], site.listeners[0].bound_port
        connection.get("/a")
        connection.get("/unknown")
    answered = read_answered(site.scratch, (entry,))
    assert [one.request for one in answered] == [f"GET {URL}", f"GET http://{HOST}/unknown"]
    assert [one.entry for one in answered] == [entry, None]
    assert check_lengths(answered, SILENT) == ()
    ends = (f"127.0.0.1:{local}", f"127.0.0.1:{port}")
    assert list_connections(answered) == (ServedConnection(*ends, 2, missed=True),)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"body_bytes": 990, "sent_bytes": 1290}, "1 bodies were not sent as recorded"),
        ({"sent_bytes": 1316}, "1 response heads were not sent as recorded"),
        ({"sent_bytes": 1295}, None),  # Connection: close, which reuse is judged by
        ({"sent_bytes": 1127, "protocol": "HTTP/2.0"}, None),
        ({"body_bytes": 10, "sent_bytes": 310, "complete": False}, None),
        ({"entry": None, "sent_bytes": 200, "body_bytes": 150}, None),
        ({"request": f"HEAD {URL}", "body_bytes": 0, "sent_bytes": 300}, None),
        ({"request": f"HEAD {URL}"}, "1 bodies were not sent as recorded"),
    ],
)
def test_one_answer(changes: dict[str, object], problem: str | None) -> None:
    found = check_lengths((replace(SENT, **changes),), SILENT)  # type: ignore[arg-type]
    assert len(found) == (problem is not None)
    assert (problem or "") in "".join(found)


@pytest.mark.parametrize(
    ("load", "problems"),
    [
        (received(1300), 0),
        (received(1300, url=f"{URL}#top"), 0),
        (received(1301), 1),
        (received(1020), 0),  # after a redirect Chromium leaves the head out
        (received(999), 1),
        (received(650), 1),
        (received(300), 1),
        (received(300, status=302), 0),  # of a redirect the head is enough
        (received(650, status=0), 0),  # failed: reported elsewhere
        (received(0), 0),  # from a cache
        (received(None), 0),  # wget2 does not say
        (received(77, url=f"http://{HOST}/elsewhere"), 0),
    ],
)
def test_what_the_client_received_is_what_was_sent(load: PageLoad, problems: int) -> None:
    found = check_lengths((SENT,), load)
    assert len(found) == problems
    assert all(one.startswith("1 responses were not received as recorded, ") for one in found)


def test_bodies_that_a_client_found_altered() -> None:
    found = check_lengths((SENT,), replace(SILENT, altered=(URL, URL)))
    assert found == (f"2 bodies were not received as recorded, the first {URL}: other bytes",)


def test_lines_that_are_none_of_ours_are_left_out() -> None:
    assert parse_answered(b"\xff\n{}\n" + json.dumps({"match": "exact"}).encode(), ()) == ()
