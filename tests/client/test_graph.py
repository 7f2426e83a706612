"""What the graph client gives to the process that loads the page."""

from __future__ import annotations

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
