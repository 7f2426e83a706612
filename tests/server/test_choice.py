"""Requests that method and URL do not tell apart: each gets its own answer, or an inexact one."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.archive.posted import MatchRule, Posted, digest_body, read_rules
from testbed.archive.reading import Entry
from testbed.model import Replay
from testbed.server.choice import VISITS, is_current, pattern_of
from testbed.server.choice_program import SOCKET
from testbed.server.nginx import ServerOptions
from tests.server.pages import HOST, make_entry, on_loopback

JSON = "application/json"
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
LATER = "Fri, 02 Jan 2026 00:00:00 GMT"


def posted(path: str, body: bytes, answer: bytes, folder: Path, kind: str = JSON) -> Entry:
    return make_entry(
        path, answer, folder, method="POST", request_body_size=len(body),
        posted=digest_body(body, kind), headers_size=None,
    )  # fmt: skip


def got(
    folder: Path,
    *entries: Entry,
    ask: Sequence[tuple[bytes, ...]],
    rules: tuple[MatchRule, ...] = (),
) -> tuple[list[bytes], Replay]:
    """What requests get: method, path, body and further lines of the head of each."""
    bodies = []
    terms = ServerOptions(validates=True)
    with (
        on_loopback(folder, *entries, rules=rules, terms=terms) as served,
        served.connected() as connection,
    ):
        for method, path, body, *lines in ask:
            length = [b"Content-Length: %d" % len(body)] if body else []
            head = [b"%s %s HTTP/1.1" % (method, path), b"Host: " + HOST.encode(), *length, *lines]
            connection.send(b"\r\n".join(head) + b"\r\n\r\n" + body)
            response = connection.receive(method != b"HEAD")
            bodies.append(b"%d %s" % (response.status, response.body))
    return bodies, served.replay()


def test_bodies_of_equal_length_get_their_own_answers(tmp_path: Path) -> None:
    user, cart = b"{user{id}}", b"{cart{id}}"
    entries = posted("/q", user, b"user", tmp_path), posted("/q", cart, b"cart", tmp_path)
    asked = [(b"POST", b"/q", body) for body in (cart, user, b"{what{id}}", b"{}")]
    bodies, replay = got(tmp_path, *entries, ask=asked)
    assert bodies[:2] == [b"200 cart", b"200 user"]
    assert (replay.exact, len(replay.inexact), replay.missed) == (2, 2, ())


def test_a_body_that_nobody_knows_is_never_exact(tmp_path: Path) -> None:
    entry = replace(posted("/q", b"abc", b"old", tmp_path), posted=None)
    bodies, replay = got(tmp_path, entry, ask=[(b"POST", b"/q", b"abc")])
    assert (bodies, replay.exact, len(replay.inexact)) == ([b"200 old"], 0, 1)


def test_a_range_gets_its_own_bytes(tmp_path: Path) -> None:
    entries = [
        make_entry("/v", body, tmp_path, status=206, range=part, headers_size=None)
        for part, body in (("bytes=0-9", b"first"), ("bytes=50-", b"last"))
    ]
    asked = [(b"GET", b"/v", b"", b"Range: " + part) for part in
             (b"bytes=50-", b"bytes=0-9", b"bytes=7-8")]  # fmt: skip
    bodies, replay = got(tmp_path, *entries, ask=[*asked, (b"GET", b"/v", b"")])
    assert bodies == [b"206 last", b"206 first", b"206 first", b"206 last"]
    assert (replay.exact, len(replay.inexact)) == (2, 2)


def test_the_nth_gets_the_nth_answer_and_no_more_is_exact(tmp_path: Path) -> None:
    answers = [b"one", b"two", b"three", b"four", b"five"]
    entries = [make_entry("/poll?a", body, tmp_path, headers_size=None) for body in answers]
    bodies, replay = got(tmp_path, *entries, ask=[(b"GET", b"/poll?a", b"")] * 6)
    assert bodies == [b"200 " + each for each in [*answers, b"five"]]
    assert (replay.exact, len(replay.inexact)) == (5, 1)


def test_each_visit_counts_from_the_first(tmp_path: Path) -> None:
    entries = [make_entry("/poll", body, tmp_path, headers_size=None) for body in (b"1", b"2")]
    with on_loopback(tmp_path, *entries) as served, served.connected() as connection:
        first = [connection.get("/poll").body for _ in entries]
        (served.scratch / VISITS).write_bytes(b"\n")
        assert [connection.get("/poll").body for _ in entries] == first == [b"1", b"2"]
    assert served.replay().exact == 4


@pytest.mark.parametrize(
    ("rule", "body", "path"),
    [
        (MatchRule("http://*/q*", ignore_fields=("ts",)), b'{"a": 1, "ts": 345678}', b"/q?v=1"),
        (MatchRule("http://*/q*", ignore_body=True), b"anything", b"/q?v=1"),
        (MatchRule("*/q*", ignore_query=("v",), ignore_fields=("ts",)), b'{"ts":3,"a":1}',
         b"/q?v=2"),
    ],
)  # fmt: skip
def test_what_a_rule_ignores_does_not_count(
    tmp_path: Path, rule: MatchRule, body: bytes, path: bytes
) -> None:
    entry = posted("/q?v=1", b'{"a":1,"ts":12}', b"yes", tmp_path)
    asked = [(b"POST", path, body), (b"POST", b"/q?v=1", b'{"a":2,"ts":12}')]
    bodies, replay = got(tmp_path, entry, ask=asked, rules=(rule,))
    assert bodies == [b"200 yes"] * 2
    assert replay.exact == (2 if rule.ignore_body else 1)


@pytest.mark.parametrize(
    ("lines", "due"),
    [
        ((b'If-None-Match: "v1"',), b"304 "),
        ((b'If-None-Match: "v0", W/"v1"',), b"304 "),
        ((b'If-None-Match: "v11"',), b"200 body"),
        ((b"If-Modified-Since: " + DATE.encode(),), b"304 "),
        ((b"If-Modified-Since: " + LATER.encode(),), b"200 body"),
        ((b'If-None-Match: "v2"', b"If-Modified-Since: " + DATE.encode()), b"200 body"),
        ((), b"200 body"),
    ],
)
def test_a_server_answers_by_its_own_validators(
    tmp_path: Path, lines: tuple[bytes, ...], due: bytes
) -> None:
    headers = (("ETag", '"v1"'), ("Last-Modified", DATE), ("Content-Type", "text/css"))
    entries = make_entry(), make_entry("/s.css", b"body", tmp_path, headers=headers)
    bodies, replay = got(tmp_path, *entries, ask=[(b"GET", b"/s.css", b"", *lines)])
    assert (bodies, replay.exact, replay.inexact) == ([due], 1, ())


def test_a_range_of_another_representation_is_inexact(tmp_path: Path) -> None:
    headers = (("ETag", '"v1"'),)
    entry = make_entry("/v", b"part", tmp_path, status=206, range="bytes=0-", headers=headers)
    asked = [(b"GET", b"/v", b"", b"Range: bytes=0-", b'If-Range: "v%d"' % n) for n in (1, 2)]
    _, replay = got(tmp_path, entry, ask=asked)
    assert (replay.exact, len(replay.inexact)) == (1, 1)


def test_a_request_that_breaks_off_stops_nobody(tmp_path: Path) -> None:
    entries = [make_entry("/poll", body, tmp_path, headers_size=None) for body in (b"1", b"2")]
    with on_loopback(tmp_path, *entries) as served, served.connected() as connection:
        for said in (b"", b"GET / HTTP/1.0\r\nX-Asked: "):
            with socket.socket(socket.AF_UNIX) as end:
                end.connect(os.path.relpath(served.scratch / SOCKET))
                end.sendall(said)
        assert connection.get("/poll").body == b"1"


def test_head_gets_the_head_of_what_get_gets(tmp_path: Path) -> None:
    entries = [
        make_entry("/v", body, tmp_path, status=206, range=part, headers_size=None)
        for part, body in (("bytes=0-9", b"first"), ("bytes=50-", b"last"))
    ]
    asked = [(b"HEAD", b"/v", b"", b"Range: bytes=50-")]
    bodies, replay = got(tmp_path, *entries, ask=asked)
    assert (bodies, replay.exact) == ([b"206 "], 1)


def test_the_boundary_of_a_multipart_body_does_not_count() -> None:
    def body(boundary: str) -> Posted:
        text = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--{boundary}--'
        )
        return digest_body(text.encode(), f"multipart/form-data; boundary={boundary}")

    assert body("----WebKitFormBoundaryAAAA") == body("----WebKitFormBoundaryBBBB")


def test_members_are_told_apart() -> None:
    one = digest_body(b'{"a": {"b": [1, 2]}, "t": 5}', JSON)
    other = digest_body(b'{"a": {"b": [1, 3]}, "t": 6}', JSON)
    assert one.fields and other.fields
    assert {k for k in one.fields if one.fields[k] != other.fields[k]} == {"a.b.1", "t"}
    form = digest_body(b"a=1&t=2", "application/x-www-form-urlencoded")
    assert form.fields is not None and set(form.fields) == {"a", "t"}
    assert digest_body(b"[" * 100_000, JSON).fields is None


@pytest.mark.parametrize("wrong", [{}, {"url": "x"}, {"url": 1, "ignore_body": True}, {"at": "x"}])
def test_rules_that_are_none_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="match"):
        read_rules([wrong])


def test_a_validator_is_taken_as_it_is() -> None:
    pattern = pattern_of((("ETag", '"a.$(1)"'),))
    assert is_current(pattern, '"a.$(1)"|') and not is_current(pattern, '"ax$(1)"|')
    assert not is_current(pattern_of(()), "|")
