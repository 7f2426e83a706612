"""Visits of a page, one after the other in one browser: what it keeps, and what it asks for again.

Pages are recorded from a server of which every byte is known: it says how long each file of theirs
is kept in a cache.
"""

from __future__ import annotations

import pytest

from testbed.model import VISIT_HARS, Condition
from tests.acceptance.house import House, Plant, assert_bad, assert_ok
from tests.measured import load_of
from wings.pages.tests.recorder.site import Answer, Site, png, serving

pytestmark = [pytest.mark.guest, pytest.mark.browser]

WWW = "http://www.site.test"
YEAR = (("Cache-Control", "max-age=31536000"),)
NEVER = (("Cache-Control", "no-store"),)
ASKED_AGAIN = (("Cache-Control", "no-cache"), ("ETag", '"1"'))
"""Kept, and held against its server's each time: a replay has it sent in full."""
PAGES = {
    "asked-again": (ASKED_AGAIN, YEAR, NEVER),
    "kept": (YEAR, YEAR, NEVER),
    "all-kept": (YEAR, YEAR, YEAR),
}
"""What is said of the document, its script and its picture."""
VISITS = 3


@pytest.fixture(scope="module", autouse=True)
def pages(house: House) -> None:
    site = Site()
    for name, (document, script, picture) in PAGES.items():
        html = f'<!doctype html><html><script src="/{name}.js"></script><img src="/{name}.png">'
        for url, kind, body, rules in (
            (name, "text/html", html.encode(), document),
            (f"{name}.js", "text/javascript", b"document.title = 'kept';", script),
            (f"{name}.png", "image/png", png(9), picture),
        ):
            site.put(f"{WWW}/{url}", Answer(body, headers=(("Content-Type", kind), *rules)))
    with serving(site):
        for name in PAGES:
            house.record(site, f"{WWW}/{name}", name)


@pytest.mark.nightly(but="kept")
@pytest.mark.parametrize("idle_s", [0, 600], ids=["connections kept", "connections ended"])
def test_what_a_cache_has_is_not_asked_for_again(house: House, idle_s: int) -> None:
    ran = house.run(
        page=list(PAGES)[:2], visits=VISITS, between=["clear-cache", "keep"], idle_s=idle_s
    )
    for record in ran.records:
        assert_ok(record)
        condition = record.trial.condition_as(Condition)
        page, kept = condition.page, condition.between == "keep"
        again = {"asked-again": 2, "kept": 1}[page] if kept else 3
        load = load_of(record)
        assert load is not None and record.replay is not None
        assert [visit.missing for visit in load.visits] == [()] * VISITS
        assert len(load.requests) == again == len(ran.har(record))
        hars = [ran.folder / "trials" / record.trial_id / name for name in VISIT_HARS[: VISITS - 1]]
        assert [har.read_text().count('"request"') for har in hars] == [3, again]
        assert record.replay.exact == 3 + (VISITS - 1) * again
        assert (load.ttfb_ms is None) == (kept and page == "kept")


def test_a_page_of_which_nothing_is_asked_for_has_no_number(house: House) -> None:
    record = house.run(page="all-kept", visits=2, between="keep").one()
    assert_bad(record, "all of the page came from the cache", "failed")


def test_a_cache_that_is_not_emptied_is_found_out(house: House, plant: Plant) -> None:
    plant("client/chromium/visit.py", "if not errand.keep_cache:", "if False:")
    record = house.run(page="asked-again", visits=2).one()
    assert_bad(record, "of the recording not made", "failed")
