"""Recorded, imported or written down as numbers: every page goes one way through replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from testbed.base.errors import EXIT_OK
from testbed.model import Condition
from testbed.pages.catalogue import read_kind
from tests.acceptance.house import House, Ran, assert_exact
from wings.pages.tests.importing.site import browsertime, devtools, firefox, webpagetest
from wings.pages.tests.recorder.site import API, STATIC, WWW, make_site, serving, typed

pytestmark = [pytest.mark.guest, pytest.mark.browser]

PAGE = f"""<!doctype html><html><head><title>A site</title>
<link rel=stylesheet href="{STATIC}/style.css">
<script src="{STATIC}/app.js"></script></head>
<body class=text>text<img src="/pixel.png"><img src="/pixel.png#again"><img src="/old.png">
<img src="/none.png"><iframe src="{API}/frame.html"></iframe>
<script>
fetch('/empty');
fetch('/twice.json?unread'); // nobody reads the body, so nobody hears of its end
const twice = async (path) => {{
  await (await fetch(path)).text();
  await (await fetch(path)).text();
}};
twice('/twice.json');
twice('/kept.json'); // the second time it comes from the cache
addEventListener('load', () => fetch('{API}/collect?late=1', {{
  method: 'POST', body: 'twelve bytes', headers: {{'X-Kind': 'a'}}}}));</script></body></html>
"""
# Bodies are there but for Browsertime's, which become a table.
PRODUCERS: dict[str, Callable[[], dict[str, Any]]] = {
    "chrome": devtools, "firefox": firefox, "browsertime": browsertime, "webpagetest": webpagetest,
}  # fmt: skip
KINDS = {"recorded": "archive", "chrome": "archive", "firefox": "archive",
         "browsertime": "table", "webpagetest": "archive", "wikipedia": "table"}  # fmt: skip


@pytest.fixture(scope="module")
def ran(house: House, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    site = make_site()
    site.put(f"{WWW}/", typed(PAGE.encode(), "text/html"))
    with serving(site):
        house.record(site, f"{WWW}/", "recorded")
    for name, make in PRODUCERS.items():
        har = tmp_path_factory.mktemp("har") / f"{name}.har"
        har.write_text(json.dumps(make()))
        house.import_page(har, name)
    house.take("wikipedia")
    return house.run(page=list(KINDS), rtt_ms=100)


@pytest.mark.thorough
def test_they_are_whole(house: House, ran: Ran) -> None:
    assert {path.name: read_kind(path) for path in house.pages.iterdir()} == KINDS
    code, said = house.command("pages", "verify")
    assert code == EXIT_OK, said
    assert ran.code == EXIT_OK


@pytest.mark.parametrize("page", list(KINDS))
def test_a_browser_gets_all_of_it_exactly(house: House, ran: Ran, page: str) -> None:
    archive = house.archive(page)
    assert len(archive.hosts) > 1
    assert_exact(ran.one(page=page), archive)


def test_so_does_the_graph_client_over_http_1(house: House) -> None:
    ran = house.run(page=list(KINDS), client="graph", protocol="h1")
    assert ran.code == EXIT_OK
    for record in ran.records:
        assert_exact(record, house.archive(record.trial.condition_as(Condition).page))
