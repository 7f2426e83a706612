"""What the graph client gives to the process that loads the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.client.graph import describe_order
from testbed.client.interface import LoadOrder
from tests.client.sites import Site


@pytest.mark.parametrize(
    ("url", "tls", "port", "target"),
    [("http://www.page.test", False, 80, "/"),
     ("http://www.page.test:81/x?y=1#z", False, 81, "/x?y=1"),
     ("https://www.page.test/", True, 443, "/")],
)  # fmt: skip
def test_a_request_goes_to_its_origin_without_its_fragment(
    tmp_path: Path, url: str, tls: bool, port: int, target: str
) -> None:
    site = Site(url)
    site.add(url, b"x", "text/html", "root")
    order = LoadOrder(site.archive(), (), False, "none", tmp_path, tmp_path, tmp_path, 60.0)
    (entry,) = describe_order(order)["entries"]
    found = (entry["tls"], entry["host"], entry["port"], entry["target"])
    assert found == (tls, "www.page.test", port, target)


def test_a_wrong_guess_is_with_the_host_of_the_page(tmp_path: Path) -> None:
    site = Site("http://www.page.test/")
    site.add(site.root, b"x", "text/html", "root")
    site.add("http://b.page.test/1", b"y", "image/png")
    site.add("https://b.page.test/2", b"y", "image/png")
    site.add("http://c.page.test/late", b"y", "image/png", after_load=True)
    order = LoadOrder(site.archive(), (), False, "none", tmp_path, tmp_path, tmp_path, 60.0)
    assert describe_order(order)["preconnect"] == []
    plain, secure = ({"host": "b.page.test", "port": port, "tls": port == 443, "right": True}
                     for port in (80, 443))  # fmt: skip
    assert describe_order(replace(order, preconnect_pct=100.0))["preconnect"] == [plain, secure]
    own = {"host": "www.page.test", "port": 80, "tls": False, "right": False}
    assert describe_order(replace(order, preconnect_pct=0.0))["preconnect"] == [own, own]
