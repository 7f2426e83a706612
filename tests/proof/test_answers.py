"""Answers that are not a request's own, as the client's log shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.archive.posted import digest_body
from testbed.archive.reading import Entry
from testbed.model import PageLoad, Replay, RequestTiming, Substitution
from testbed.proof.answers import check_own_answers
from testbed.proof.browser_log import BrowserLog, LoggedRequest
from testbed.proof.visits import split_visits
from tests.evidence import found
from tests.server.pages import HOST, make_archive, make_entry

URL = f"http://{HOST}"


def recorded(text: str, size: int) -> Entry:
    return replace(
        make_entry("/q", method="POST", request_body_size=len(text)),
        posted=digest_body(text.encode(), "text/plain"), body_size=size, decoded_size=size,
    )  # fmt: skip


def logged(path: str, size: int, text: str = "", **headers: str) -> LoggedRequest:
    """What a client logged of a request, and of an answer of so many bytes."""
    sent = headers | ({"content-length": str(len(text))} if text else {})
    request: dict[str, Any] = {"method": "POST" if text else "GET", "headers": [
        {"name": name, "value": value} for name, value in sent.items()]}  # fmt: skip
    request |= {"postData": {"text": text}} if text else {}
    response = {"status": 200, "content": {"size": size}, "headers": []}
    told = RequestTiming(URL + path, 200, 0.0, 1.0)
    return LoggedRequest(told, {"request": request, "response": response}, {"blocked": 0.0}, 0.0)


def problems(entries: list[Entry], *requests: LoggedRequest, inexact: int = 0) -> list[str]:
    load = PageLoad("chromium", "1", 1.0, tuple(each.told for each in requests))
    log = BrowserLog(split_visits(load)[0], requests, (), {})
    line = f"{requests[0].entry['request']['method']} {requests[0].told.url}"
    replay = Replay(0, (Substitution(line, line),) * inexact)
    archive = make_archive(*entries)
    return found(check_own_answers, load=load, logs=(log,), replay=replay, archive=archive)


@pytest.mark.parametrize(
    ("text", "size", "inexact", "wrong"),
    [("user", 10, 0, False), ("cart", 5011, 0, False), ("user", 5011, 0, True),
     ("user", 5011, 1, False), ("else", 10, 0, True), ("else", 10, 1, False)],
)  # fmt: skip
def test_a_body_gets_its_own_answer(text: str, size: int, inexact: int, wrong: bool) -> None:
    entries = [recorded("user", 10), recorded("cart", 5011)]
    said = problems(entries, logged("/q", size, text), inexact=inexact)
    due = [f"POST {URL}/q got {size} bytes, which is not its own recorded answer"]
    assert said == (due if wrong else [])


@pytest.mark.parametrize(("sizes", "wrong"), [((1, 2), False), ((2, 1), False), ((1, 1), True)])
def test_equal_requests_get_each_answer_once(sizes: tuple[int, int], wrong: bool) -> None:
    entries = [replace(make_entry("/poll"), decoded_size=size) for size in (1, 2)]
    assert bool(problems(entries, *(logged("/poll", size) for size in sizes))) == wrong


def test_equal_answers_may_be_given_again() -> None:
    entries = [replace(make_entry("/poll"), decoded_size=1) for _ in range(2)]
    assert not problems(entries, *(logged("/poll", 1) for _ in range(3)))


def test_a_range_is_told_from_all() -> None:
    entries = [replace(make_entry("/v", range="bytes=0-9"), decoded_size=10)]
    assert not problems(entries, logged("/v", 10, range="bytes=0-9"))
    assert problems(entries, logged("/v", 10, range="bytes=5-14"))


@pytest.mark.parametrize(("again", "wrong"), [(5, False), (7, True)])
def test_what_has_not_changed_is_told_as_the_cache_has_it(again: int, wrong: bool) -> None:
    full = replace(make_entry("/d"), decoded_size=5)
    entries = [full, replace(make_entry("/d", status=304), decoded_size=0)]
    assert bool(problems(entries, logged("/d", 5), logged("/d", again))) == wrong
