"""What engineers ask of a recorded page without recording it again: hosts blocked, hosts slower."""

from __future__ import annotations

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import Condition
from tests.acceptance.house import House, Ran, assert_bad, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW, API, TAG = "http://www.shop.test", "http://api.shop.test", "http://tags.tracker.test"
PAGE = f"""<!doctype html><title>Shop</title><link rel=stylesheet href=/style.css>
<script src="{TAG}/tag.js"></script><h1>Shop</h1><img src="{API}/picture.png">
"""
WAIT_S = 1.2


def make_shop() -> Site:
    """A shop whose tag asks for a pixel, and whose interface is slow."""
    site = Site()
    site.put(f"{WWW}/", typed(PAGE.encode(), "text/html"))
    site.put(f"{WWW}/style.css", typed(b"h1 { color: teal }", "text/css"))
    tag = f"new Image().src = '{API}/pixel.png?of=tag'".encode()
    site.put(f"{TAG}/tag.js", typed(tag, "text/javascript"))
    site.put(f"{API}/pixel.png?of=tag", typed(png(1), "image/png"))
    slow = Answer(png(2), headers=(("Content-Type", "image/png"),), delay_s=WAIT_S)
    site.put(f"{API}/picture.png", slow)
    return site


@pytest.fixture(scope="module")
def shop(house: House) -> str:
    with serving(make_shop()) as site:
        house.record(site, f"{WWW}/", "shop")
    return "shop"


@pytest.fixture(scope="module")
def blocked(house: House, shop: str) -> Ran:
    return house.run(page=shop, block=["", "third-parties"])


def test_what_is_blocked_is_not_asked_for_nor_what_it_leads_to(blocked: Ran) -> None:
    assert blocked.code == EXIT_OK
    asked = {
        record.trial.condition_as(Condition).block: {each.url for each in load_of(record).requests}
        for record in blocked.records
    }
    assert f"{TAG}/tag.js" in asked[""]
    assert asked["third-parties"] == {f"{WWW}/", f"{WWW}/style.css", f"{API}/picture.png"}


@pytest.mark.nightly
def test_what_blocks_nothing_is_no_number(house: House, shop: str) -> None:
    (record,) = house.run(page=shop, block="none.test").records
    assert_bad(record, "nothing shows that block = none.test was performed", "unproven")


def picture_ms(ran: Ran) -> float:
    """How long the slow picture took; the only load counts."""
    (record,) = ran.records
    assert_ok(record)
    urls = {each.url: each for each in load_of(record).requests}
    picture = urls[f"{API}/picture.png"]
    assert urls[f"{WWW}/style.css"].end_ms - urls[f"{WWW}/style.css"].start_ms < 400
    return picture.end_ms - picture.start_ms


@pytest.mark.nightly
def test_one_host_is_slower_and_the_others_are_not(house: House, shop: str) -> None:
    assert 500 <= picture_ms(house.run(page=shop, think_by_host="api.shop.test 500")) < 900


@pytest.mark.nightly
def test_recorded_waits_are_replayed(house: House, shop: str) -> None:
    assert WAIT_S * 1000 <= picture_ms(house.run(page=shop, server_think="recorded")) < 1700


@pytest.mark.nightly
def test_a_think_time_of_a_host_that_the_page_has_not_is_no_number(house: House, shop: str) -> None:
    (record,) = house.run(page=shop, think_by_host="none.test 500").records
    assert_bad(record, "nothing shows that think_by_host = none.test 500", "unproven")
