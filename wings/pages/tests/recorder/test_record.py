"""A site of several hosts, recorded by the real browser: every byte, every cause, every lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from wings.pages.exchange import PageExchange, Recording
from wings.pages.recorder import RecordError, RecordOrder, record
from wings.pages.tests.recorder.site import API, STATIC, WWW, Site, serving, typed

pytestmark = pytest.mark.browser

Recorded = tuple[Site, Recording]
HELD, MUTE = f"{WWW}/held.txt", f"{WWW}/mute.txt"


def only(recording: Recording, url: str, method: str = "GET") -> PageExchange:
    (found,) = (e for e in recording.exchanges if (e.url, e.method) == (url, method))
    return found


def test_every_answered_request_is_there_and_no_other(recorded: Recorded) -> None:
    site, recording = recorded
    kept = sorted((exchange.method, exchange.url) for exchange in recording.exchanges
                  if exchange.status)  # fmt: skip
    assert kept == sorted(one for one in site.asked if one[1] != MUTE)


def test_every_byte_is_as_sent(recorded: Recorded) -> None:
    site, recording = recorded
    for exchange in filter(lambda each: each.status, recording.exchanges):
        answer = site.answer(exchange.method, exchange.url)
        sent = answer.body if answer.cut is None else answer.body[: answer.cut]
        assert exchange.body == sent, exchange.url
        assert exchange.body_size == len(sent)
        assert exchange.headers_size == len(answer.head()), exchange.url
        assert exchange.headers == answer.lines(), exchange.url
        assert exchange.status == int(answer.status.split()[0])
        assert exchange.protocol == "http/1.1"


def test_sizes_after_decoding(recorded: Recorded) -> None:
    _, recording = recorded
    page = recording.exchanges[0]
    assert page.decoded_size is not None
    assert page.decoded_size > page.body_size
    assert page.mime == "text/html"
    assert only(recording, f"{WWW}/empty").decoded_size == 0


@pytest.mark.parametrize(
    ("url", "how", "initiator"),
    [
        (f"{WWW}/", "root", None),
        (f"{STATIC}/style.css", "parser", f"{WWW}/"),
        (f"{STATIC}/font.woff2", "css", f"{STATIC}/style.css"),
        (f"{STATIC}/back.png", "css", f"{STATIC}/style.css"),
        (f"{STATIC}/script.png", "script", f"{STATIC}/app.js"),
        (f"{STATIC}/new.png", "redirect", f"{WWW}/old.png"),
        (f"{API}/frame.html", "frame", f"{WWW}/"),
        (f"{STATIC}/pixel.png", "parser", f"{API}/frame.html"),
        (f"{WWW}/empty", "script", f"{WWW}/"),
    ],
)
def test_what_led_to_a_request(
    recorded: Recorded, url: str, how: str, initiator: str | None
) -> None:
    exchange = only(recorded[1], url)
    assert (exchange.how, exchange.initiator) == (how, initiator)


def test_a_post_after_the_load_and_its_preflight(recorded: Recorded) -> None:
    _, recording = recorded
    url = f"{API}/collect?late=1"
    post, preflight = only(recording, url, "POST"), only(recording, url, "OPTIONS")
    assert post.request_body_size == len("twelve bytes")
    assert ("X-Kind", "a") in [(n.title(), v) for n, v in post.request_headers]
    assert (post.after_load, preflight.after_load) == (True, True)
    assert (preflight.how, preflight.initiator) == ("script", f"{WWW}/")
    order = [exchange.method for exchange in recording.exchanges if exchange.url == url]
    assert order == ["OPTIONS", "POST"]


def test_the_same_url_twice(recorded: Recorded) -> None:
    site, recording = recorded
    twice = [e for e in recording.exchanges if e.url == f"{WWW}/twice.json"]
    assert [e.body for e in twice] == [site.answer("GET", f"{WWW}/twice.json").body] * 2
    # The second picture of one address was no request at all.
    only(recording, f"{WWW}/pixel.png")


def test_times_and_title(recorded: Recorded) -> None:
    _, recording = recorded
    assert recording.title == "A & site"
    assert recording.load_ms is not None
    starts = [exchange.start_ms for exchange in recording.exchanges]
    assert all(start is not None and start >= 0 for start in starts)
    assert all(e.after_load == ((e.start_ms or 0) > recording.load_ms) for e in recording.exchanges)


def test_what_could_not_be_kept_is_said(recorded: Recorded) -> None:
    _, recording = recorded
    (mute,) = (note for note in recording.notes if MUTE in note)
    assert mute == f"Cancelled by the page before a response: {MUTE}."
    (held,) = (note for note in recording.notes if HELD in note)
    assert held.startswith("Cancelled by the page before the body was complete")
    (cached,) = (note for note in recording.notes if f"{WWW}/kept.json" in note)
    assert cached.startswith("Answered by the browser's disk cache")
    (refused,) = (note for note in recording.notes if "http://dead.test/refused" in note)
    assert refused == "No response (net::ERR_CONNECTION_REFUSED): http://dead.test/refused."
    assert {each.url: each.failure for each in recording.exchanges if each.failure} == {
        HELD: "net::ERR_ABORTED",
        MUTE: "net::ERR_ABORTED",
        "http://dead.test/refused": "net::ERR_CONNECTION_REFUSED",
    }


def test_nothing_is_left(recorded: Recorded, open_scratch: Path) -> None:
    assert recorded[1].exchanges
    assert not list(open_scratch.iterdir())


def test_a_page_that_never_ends_loading(open_scratch: Path) -> None:
    site = Site()
    site.put(f"{WWW}/", typed(b"<img src=/mute.png>", "text/html"))
    site.put(f"{WWW}/mute.png", typed(b"", "image/png", delay_s=60))
    with serving(site):
        order = RecordOrder(f"{WWW}/", wait_s=0.1, timeout_s=2, resolver_rules=site.rules)
        with pytest.raises(RecordError, match=r"no load event in 2 s.*--timeout"):
            record(order, open_scratch, lambda _line: None)
    assert not list(open_scratch.iterdir())


def test_a_host_that_is_not_there(open_scratch: Path) -> None:
    order = RecordOrder("http://nowhere.test/", resolver_rules=("MAP * 127.0.0.1:1",))
    with pytest.raises(RecordError, match="ERR_"):
        record(order, open_scratch, lambda _line: None)


@pytest.mark.nightly
def test_a_page_that_never_gets_quiet_is_told(open_scratch: Path) -> None:
    site = Site()
    script = b"<p>a</p><script>onload = () => setTimeout(() => fetch('/poll'), 1)</script>"
    site.put(f"{WWW}/", typed(script, "text/html"))
    site.put(f"{WWW}/poll", typed(b"", "text/plain", delay_s=60))
    told: list[str] = []
    with serving(site):
        order = RecordOrder(f"{WWW}/", wait_s=1, timeout_s=15, resolver_rules=site.rules)
        recording = record(order, open_scratch, told.append)
    page, poll = recording.exchanges
    assert (page.url, page.failure) == (f"{WWW}/", None)
    assert (poll.url, poll.status, poll.failure) == (f"{WWW}/poll", 0, "net::ERR_TIMED_OUT")
    assert poll.after_load
    assert any("not quiet" in note for note in recording.notes)
    assert any(f"{WWW}/poll" in note for note in recording.notes)
    assert any(line.startswith("2 requests, ") for line in told)


def test_options_reach_the_browser(open_scratch: Path) -> None:
    site = Site()
    page = (
        "<body style='height:5000px'><img loading=lazy src=/lazy.png style='margin-top:4900px'>"
        "<script>fetch(`/seen/${innerWidth}/${navigator.userAgent}/${Date.now()}`)</script>"
        "<script>new Worker(URL.createObjectURL(new Blob(["
        "'fetch(\"http://www.site.test/worker/\" + Date.now())'])))</script>"
    )
    site.put(f"{WWW}/", typed(page.encode(), "text/html"))
    with serving(site):
        order = RecordOrder(f"{WWW}/", wait_s=0.5, viewport=(500, 400), user_agent="Testing/1",
                            scroll=True, pinned=True, resolver_rules=site.rules)  # fmt: skip
        recording = record(order, open_scratch, lambda _line: None)
    paths = {exchange.url.removeprefix(WWW) for exchange in recording.exchanges}
    assert "/seen/500/Testing/1/1767225600000" in paths
    assert "/worker/1767225600000" in paths
    assert only(recording, f"{WWW}/lazy.png").after_load
    assert recording.pinned
    assert "500x400" in recording.source
