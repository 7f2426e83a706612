"""Archives of other tools load as the pages that their makers saw."""

from __future__ import annotations

import pytest

from tests.acceptance.house import House, assert_ok
from wings.pages.tests.importing import test_wpr
from wings.pages.tests.importing.site import Sent
from wings.pages.tests.importing.test_crawl import CRAWL, LIB, PAGES, PIC, TWO, warc
from wings.pages.tests.importing.test_warc import make_wacz

pytestmark = pytest.mark.guest

BOOKS = "https://b\u00fccher.example:8443"
IN_ASCII = "https://xn--bcher-kva.example:8443"


def test_a_page_of_a_crawl_and_one_of_a_name_beyond_ascii(house: House) -> None:
    file = house.folder / "x"
    file.write_bytes(make_wacz({"archive/data.warc.gz": warc(*CRAWL)}, PAGES))
    house.import_page(file, "second", "--page", "p2")
    html = f"<!doctype html><script src={BOOKS}/a.js></script>".encode()
    site = (
        Sent(f"{BOOKS}/", "text/html", html, document=True),
        Sent(f"{BOOKS}/a.js", "text/javascript", b"let a;" * 99, initiator=f"{BOOKS}/"),
    )
    file.write_bytes(test_wpr.make(site))
    house.import_page(file, "books")
    ran = house.run(page=["second", "books"], client="graph", protocol="h1")
    asked = {"second": {TWO, LIB, PIC}, "books": {f"{IN_ASCII}/", f"{IN_ASCII}/a.js"}}
    for name, urls in asked.items():
        record = ran.one(page=name)
        assert_ok(record)
        assert {entry["request"]["url"] for entry in ran.har(record)} == urls
