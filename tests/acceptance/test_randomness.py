"""A page whose URLs are made of clocks and random numbers: pinned, free, and counted."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import pytest

from testbed.base.errors import EXIT_OK
from tests.acceptance.house import House, Ran, assert_exact, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW, ADS = "http://www.random.test", "http://ads.random.test"
PAGE = f"""<!doctype html><html><head><title>Random</title>
<script src="{ADS}/tag.js"></script></head><body><script>
const ask = (url) => {{ new Image().src = url; }};
ask('/random.png?r=' + Math.random());
ask('/date.png?a=1&t=' + Date.now());
ask('{ADS}/values.png?v=' + crypto.getRandomValues(new Uint16Array(3)).join('-'));
ask('/stopwatch.png?p=' + performance.now());
</script></body></html>
"""
# Large random numbers, of the shape that secrets have as well.
TAG = """
const bytes = crypto.getRandomValues(new Uint8Array(16));
const id = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
new Image().src = '//ads.random.test/visitor.png?id=' + id + '&at=' + new Date().getTime();
"""
ANSWERS = {
    f"{WWW}/": typed(PAGE.encode(), "text/html"),
    f"{ADS}/tag.js": typed(TAG.encode(), "text/javascript"),
    f"{WWW}/random.png": typed(png(1), "image/png"),
    f"{WWW}/date.png": typed(png(2), "image/png"),
    f"{ADS}/values.png": typed(png(3), "image/png"),
    f"{WWW}/stopwatch.png": typed(png(4), "image/png"),
    f"{ADS}/visitor.png": typed(png(5), "image/png"),
}
# The browser's own generator has a fixed seed, also when scripts are free.
SEEDED = f"{WWW}/random.png"
CHANGING = {url for url in ANSWERS if url.endswith(".png")} - {SEEDED}
SECRET_SHAPE = f"{ADS}/visitor.png"
RTTS_MS = [20.0, 200.0]
LATE_S = 4.0


class Careless(Site):
    """Answers whatever the query is."""

    def answer(self, method: str, url: str) -> Answer:
        return ANSWERS[url.partition("?")[0]]


class Late(Careless):
    """Gives the script that the others wait for so late that no replay's stopwatch is as far."""

    def answer(self, method: str, url: str) -> Answer:
        answer = super().answer(method, url)
        return replace(answer, delay_s=LATE_S) if url == f"{ADS}/tag.js" else answer


@pytest.fixture(scope="module")
def ran(house: House) -> Ran:
    with serving(Careless()) as site:
        house.record(site, f"{WWW}/", "pinned", "--pin", "--keep-secrets")
    with serving(Late()) as site:
        house.record(site, f"{WWW}/", "free")
    return house.run(page=["pinned", "free"], rtt_ms=RTTS_MS)


@pytest.mark.nightly(but="^20.0$")
@pytest.mark.parametrize("rtt_ms", RTTS_MS)
def test_pinned_all_are_exact(house: House, ran: Ran, rtt_ms: float) -> None:
    record = ran.one(page="pinned", rtt_ms=rtt_ms)
    assert_exact(record, house.archive("pinned"))
    assert load_of(record).pinned


@pytest.mark.parametrize("rtt_ms", RTTS_MS)
def test_free_each_is_answered_by_the_longest_prefix(house: House, ran: Ran, rtt_ms: float) -> None:
    record = ran.one(page="free", rtt_ms=rtt_ms)
    assert_ok(record)
    load, replay = load_of(record), record.replay
    assert load is not None and replay is not None
    assert not load.pinned
    assert (replay.exact, replay.missed) == (3, ())
    recorded = {entry.url for entry in house.archive("free").entries}
    for one in replay.inexact:
        method, asked = one.asked.split()
        assert method == "GET" and asked not in recorded
        assert one.answered.split()[1] in recorded
        assert asked.partition("?")[0] == one.answered.split()[1].partition("?")[0]
    assert {one.asked.split()[1].partition("?")[0] for one in replay.inexact} == CHANGING
    assert len(replay.inexact) == len(CHANGING)


def test_a_random_value_that_looks_secret_is_replaced_pinned_or_not(house: House) -> None:
    with serving(Careless()) as site:
        house.record(site, f"{WWW}/", "redacted", "--pin")
    record = house.run(page="redacted").one()
    assert_ok(record)
    assert record.replay is not None
    (one,) = record.replay.inexact
    assert one.answered == f"GET {SECRET_SHAPE}?id={'x' * 32}&at=1767225600000"
    assert re.fullmatch(rf"GET {SECRET_SHAPE}\?id=[0-9a-f]{{32}}&at=1767225600000", one.asked)


def test_pinned_at_recording_and_free_at_replay(house: House, ran: Ran) -> None:
    record = house.run(page="pinned", randomness="free").one()
    assert_ok(record)
    load, replay = load_of(record), record.replay
    assert load is not None and replay is not None
    assert not load.pinned
    # A pinned Math.random() is not the browser's own.
    assert (replay.exact, len(replay.inexact), replay.missed) == (2, len(CHANGING) + 1, ())


def test_it_is_told(ran: Ran) -> None:
    assert ran.code == EXIT_OK
    assert "71.43 % of 28 requests were answered exactly; 8 inexactly, 0 missed." in ran.said
    summary = (ran.folder / "summary.json").read_text()
    report = (ran.folder / "report.html").read_text()
    for record in ran.records:
        assert record.replay is not None
        for one in record.replay.inexact:
            assert one.asked in summary and one.answered in summary
            assert escape(one.asked) in report and escape(one.answered) in report
