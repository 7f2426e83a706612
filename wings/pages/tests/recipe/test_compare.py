"""A replay that differs in anything is not the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from testbed.model import Replay, Substitution
from wings.pages.exchange import PageExchange, Recording
from wings.pages.recipe.build import make_canonical
from wings.pages.tests.recipe.compare import ReplayComparison, compare

ROOT = "http://www.x.test/index.html"
HTML = b'<link rel=stylesheet href="/a.css"><img src="/1.gif"><img src="/2.gif">'


def made(path: str, at_ms: float, body: bytes = b"x", mime: str = "image/gif") -> PageExchange:
    return PageExchange(
        url=f"http://www.x.test/{path}", status=200,
        headers=(("Date", str(at_ms)), ("Content-Type", mime)),
        request_headers=(("User-Agent", str(at_ms)),), headers_size=100, body=body,
        body_size=len(body), mime=mime, initiator=None if path == "index.html" else ROOT,
        how="root" if path == "index.html" else "parser", start_ms=at_ms, dur_ms=at_ms / 2,
    )  # fmt: skip


INDEX = made("index.html", 0, HTML, "text/html")
LOAD = Recording(
    title="x", url=ROOT, recorded=date(2026, 1, 1), source="a test",
    exchanges=(INDEX, made("2.gif", 3), made("1.gif", 2), made("a.css", 1, mime="text/css")),
    load_ms=9.0,
)  # fmt: skip
GOOD = Replay(exact=4)


def beside(*exchanges: PageExchange, replay: Replay = GOOD) -> ReplayComparison:
    return compare("x", LOAD, replace(LOAD, exchanges=exchanges), replay)


def test_the_order_of_sending_does_not_matter_but_that_of_asking_does() -> None:
    again = beside(*LOAD.exchanges[:1], *reversed(LOAD.exchanges[1:]))
    assert again.same
    assert again.bytes_error_pct == 0
    turned = beside(INDEX, made("1.gif", 3), made("2.gif", 2), made("a.css", 1, mime="text/css"))
    assert turned.disordered == (ROOT,)
    assert not turned.same


@pytest.mark.parametrize(
    "exchanges",
    [
        LOAD.exchanges[:-1],
        (*LOAD.exchanges, made("3.gif", 4)),
        (*LOAD.exchanges, LOAD.exchanges[-1]),
        (*LOAD.exchanges[:-1], made("a.css", 1, b"y", "text/css")),
        (*LOAD.exchanges[:-1], replace(LOAD.exchanges[-1], status=404)),
    ],
)
def test_every_difference_counts(exchanges: tuple[PageExchange, ...]) -> None:
    assert not beside(*exchanges).same


@pytest.mark.parametrize("replay", [Replay(exact=3),
                                    Replay(exact=3, inexact=(Substitution("GET a", "GET b"),)),
                                    Replay(exact=4, missed=("GET c",))])  # fmt: skip
def test_every_request_must_be_answered_exactly(replay: Replay) -> None:
    assert not beside(*LOAD.exchanges, replay=replay).same


def test_bytes_are_heads_and_bodies() -> None:
    longer = replace(LOAD.exchanges[-1], headers_size=110)
    comparison = beside(*LOAD.exchanges[:-1], longer)
    assert comparison.recorded_bytes == len(HTML) + 3 + 400
    assert comparison.replayed_bytes - comparison.recorded_bytes == 10


def test_the_canonical_form_knows_nothing_of_the_load() -> None:
    other = tuple(
        replace(e, start_ms=7.0, dur_ms=None, request_headers=(), headers=(("date", "z"),
                e.headers[1])) for e in (INDEX, *reversed(LOAD.exchanges[1:]))
    )  # fmt: skip
    first = make_canonical(LOAD)
    assert first == make_canonical(replace(LOAD, exchanges=other, load_ms=1.0))
    assert [e.url.rpartition("/")[2] for e in first.exchanges] == [
        "index.html", "a.css", "1.gif", "2.gif",
    ]  # fmt: skip


def test_what_no_text_names_comes_last_by_url_and_parents_come_first() -> None:
    sheet = made("a.css", 1, b"a{b:url(9.gif)}", "text/css")
    deep = replace(made("9.gif", 2), initiator=sheet.url, how="css")
    scripted = [made("b.json", 3), made("a.json", 4), replace(made("z", 5), initiator="http://?")]
    recording = replace(LOAD, exchanges=(INDEX, deep, *scripted, *LOAD.exchanges[1:3], sheet))
    assert [e.url.rpartition("/")[2] for e in make_canonical(recording).exchanges] == [
        "index.html", "a.css", "1.gif", "2.gif", "a.json", "b.json", "z", "9.gif",
    ]  # fmt: skip
