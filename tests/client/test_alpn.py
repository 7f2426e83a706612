"""Which protocol an origin is to speak."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.client.alpn import require_protocols, wanted_protocols
from testbed.client.interface import NO_RDRAND, LoadError, LoadOrder, client_environment
from tests.client.sites import Site


@pytest.fixture
def mixed() -> Site:
    """Origins recorded over h2 in part, over http/1.1 with TLS on another port, and plain."""
    site = Site("https://a.test/")
    site.add(site.root, b"", "text/html", how="root")
    site.add("https://a.test/x", b"", "text/html", protocol="h2")
    site.add("https://b.test:8443/", b"", "text/html")
    site.add("http://c.test/", b"", "text/html")
    return site


@pytest.mark.parametrize(
    ("protocol", "wanted"),
    [("as-recorded", {"a.test": "h2", "b.test:8443": "http/1.1"}),
     ("h1", {"a.test": "http/1.1", "b.test:8443": "http/1.1"}),
     ("h2", {"a.test": "h2", "b.test:8443": "h2"})],
)  # fmt: skip
def test_wanted(mixed: Site, protocol: str, wanted: dict[str, str]) -> None:
    assert wanted_protocols(mixed.archive(), protocol) == wanted


def order_of(site: Site) -> LoadOrder:
    folder = Path("/nowhere")
    return LoadOrder(site.archive(), (), False, "none", folder, folder, folder, 1.0)


def test_only_https_origins_of_the_page_are_held_to_it(mixed: Site) -> None:
    order = order_of(mixed)
    require_protocols(order,
                      [("https://a.test/?x", "h2"), ("https://a.test:443/", "h2"),
                       ("https://b.test:8443/y", "HTTP/1.1"), ("https://a.test/failed", None),
                       ("http://c.test/", "http/1.1"), ("http://a.test/", "http/1.1"),
                       ("https://other.test/", "http/1.1")])  # fmt: skip
    with pytest.raises(LoadError, match=r"a\.test spoke http/1\.1, not h2"):
        require_protocols(order, [("https://a.test/", "http/1.1")])
    with pytest.raises(LoadError, match=r"b\.test:8443 spoke h2, not http/1\.1"):
        require_protocols(order, [("https://b.test:8443/", "h2")])


def test_no_client_draws_random_numbers_from_the_processor(mixed: Site) -> None:
    assert client_environment(order_of(mixed))["OPENSSL_ia32cap"] == NO_RDRAND
    assert int(NO_RDRAND.removeprefix("~"), 16) == 1 << 62
