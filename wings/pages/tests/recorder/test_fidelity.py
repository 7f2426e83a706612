"""A recorded page is replayed on loopback: it asks for the same, runs the same, looks the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.pages.build import build_page
from testbed.server.nginx import NGINX
from wings.pages.exchange import Recording
from wings.pages.fidelity import read_seen
from wings.pages.har_export import write_archive
from wings.pages.recorder import RecordOrder, record
from wings.pages.replaying import Replayed, replay_page
from wings.pages.tests.recorder.site import WWW, Site, png, serving, typed
from wings.pages.verify import verify_archive

pytestmark = pytest.mark.browser

PAGE = b"""<!doctype html><title>Shop</title><link rel=icon href=data:,>
<h1>Shop</h1><img src=/a.png width=300 height=200>
<script src=/app.js></script><script>function inline() {} inline();</script>"""
SCRIPT = b"""function ran() { document.body.append('ran'); } function idle() {}
ran(); fetch('/data.json').then((answer) => answer.json()).then(function shown(data) {
  document.body.style.background = data.colour; data.more.forEach(function each() {}); });"""


@pytest.fixture(scope="module")
def shop(open_scratch: Path) -> Recording:
    site = Site()
    site.put(f"{WWW}/", typed(PAGE, "text/html"))
    site.put(f"{WWW}/app.js", typed(SCRIPT, "text/javascript"))
    site.put(f"{WWW}/a.png", typed(png(90), "image/png"))
    site.put(f"{WWW}/data.json", typed(b'{"colour": "#0a0", "more": [1]}', "application/json"))
    with serving(site):
        order = RecordOrder(f"{WWW}/", wait_s=0.5, timeout_s=300, resolver_rules=site.rules)
        return record(order, open_scratch, lambda _line: None)


def replayed(recording: Recording, tmp_path: Path) -> Replayed:
    folder = tmp_path / "shop"
    write_archive(folder, recording, licence="none")
    assert verify_archive(folder) == []
    built = build_page(folder, tmp_path / "cache")
    return replay_page(built, read_seen(folder), NGINX)


def test_a_page_is_replayed_as_it_was_recorded(shop: Recording, tmp_path: Path) -> None:
    assert shop.seen is not None
    # Of app.js itself and what ran of it, all at other places; of the inline one the same.
    assert {url: len(at) for url, at in shop.seen.functions.items()} == {
        f"{WWW}/": 2, f"{WWW}/app.js": 5,
    }  # fmt: skip
    found = replayed(shop, tmp_path)
    assert found.lines() == [
        "requests: 4 of 4 asked for, with 100.0 % of their bytes; 0 answered inexactly, "
        "0 not recorded",
        "scripts: 7 of 7 functions ran that ran when it was recorded (100.0 %), and 0 others",
        "pixels: structural similarity 1.000 (1: the same picture)",
    ]


def test_a_page_whose_data_are_others_is_less_like_it(shop: Recording, tmp_path: Path) -> None:
    other = b'{"colour": "#a00", "more": []}'
    changed = tuple(
        replace(each, body=other, body_size=len(other), decoded_size=len(other),
                headers=(("Content-Type", "application/json"),))
        if each.url.endswith(".json") else each
        for each in shop.exchanges
    )  # fmt: skip
    found = replayed(replace(shop, exchanges=changed), tmp_path)
    assert found.likeness is not None
    assert (found.likeness.recorded, found.likeness.ran) == (7, 6)
    assert found.likeness.less == ((f"{WWW}/app.js", 4, 5),)
    assert found.likeness.similarity < 0.9


def test_of_an_imported_page_requests_are_known(shop: Recording, tmp_path: Path) -> None:
    found = replayed(replace(shop, seen=None), tmp_path)
    assert found.likeness is None
    assert "`pages record` keeps them" in found.lines()[1]
