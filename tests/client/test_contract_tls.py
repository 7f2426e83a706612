"""The contract of every client, over TLS: trust, protocol, version, and the hello in the SYN."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.client import CLIENTS
from testbed.client.interface import LoadError
from tests.client.har_model import Load
from tests.client.replay import Serve
from tests.client.sites import Site

pytestmark = [pytest.mark.root, pytest.mark.browser]

LEAST_HELLO = 250  # bytes; the smallest client's has about 500
OVER_TLS = [
    ("chromium", "h2"), ("chromium", "http/1.1"), ("graph", "http/1.1"), ("wget2", "h2"),
    ("wget2", "http/1.1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "protocol"), OVER_TLS)
def test_loads_the_whole_page_over_tls(
    name: str, protocol: str, site: Site, serve_tls: Serve, authority: Path, load: Load
) -> None:
    """Every connection's SYN carries what fits of the ClientHello; only the lab is trusted."""
    secure = site.over_tls(protocol)
    replay = serve_tls(secure, h2=protocol == "h2")
    loaded, har = load(name, secure, tfo=True, tls=authority)
    urls = sorted(entry.url for entry in secure.entries)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    assert sorted(replay.asked) == urls
    assert sorted(entry.request.url for entry in har.log.entries) == urls
    spoken = {entry.response.httpVersion.lower() for entry in har.log.entries}
    assert spoken == {protocol}
    payloads = replay.syns.payloads
    assert len(payloads) >= 2
    assert all(payload > LEAST_HELLO for payload in payloads)


@pytest.mark.parametrize("name", ["chromium", "wget2"])
def test_http1_does_not_pass_for_http2(
    name: str, site: Site, serve_tls: Serve, authority: Path, load: Load
) -> None:
    secure = site.over_tls("http/1.1")
    serve_tls(secure, h2=False)
    with pytest.raises(LoadError, match=r"page\.test spoke http/1\.1, not h2"):
        load(name, secure, tfo=False, tls=authority, protocol="h2")


def test_no_stranger_is_trusted(site: Site, serve_tls: Serve, load: Load) -> None:
    """Without the lab's authority nothing of the lab is trusted either."""
    replay = serve_tls(site.over_tls("http/1.1"), h2=False)
    with pytest.raises(LoadError, match="ERR_CERT_AUTHORITY_INVALID"):
        load("chromium", site.over_tls("http/1.1"), tfo=False)
    assert replay.asked == []


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_the_root_may_be_redirected_to_https(
    site: Site, serve_tls: Serve, authority: Path, load: Load, name: str
) -> None:
    """A plain root and an https page behind it, as most sites have it."""
    secure = site.over_tls("http/1.1")
    target = secure.root
    secure.entries[0] = dataclasses.replace(secure.entries[0], how="redirect", parent=site.root)
    whole = Site(site.root, [], {})
    whole.add(site.root, b"", "text/html", how="root", status=301, location=target,
              headers=(("Location", target),))  # fmt: skip
    whole = Site(site.root, whole.entries + secure.entries, whole.bodies | secure.bodies)
    replay = serve_tls(whole, h2=False)
    loaded, _ = load(name, whole, tfo=False, tls=authority)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    assert sorted(replay.asked) == sorted(entry.url for entry in whole.entries)


def test_graph_refuses_http2(site: Site, load: Load) -> None:
    with pytest.raises(MissingError, match=r"graph speaks HTTP/1\.1 only.*protocol = h1"):
        load("graph", site.over_tls("h2"), tfo=False)


@pytest.mark.parametrize("name", ["graph", "wget2"])
def test_offers_no_higher_tls_version_than_asked_for(
    name: str, site: Site, serve_tls: Serve, authority: Path, load: Load
) -> None:
    secure = site.over_tls("http/1.1")
    replay = serve_tls(secure, h2=False, versions="TLSv1.3")
    if name == "graph":
        loaded, _ = load(name, secure, tfo=False, tls=authority, tls_version="1.2")
        assert loaded.failed == (secure.root,)
    else:
        with pytest.raises(LoadError, match="no request in its log"):
            load(name, secure, tfo=False, tls=authority, tls_version="1.2")
    assert replay.asked == []


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_a_server_with_tls_1_2_only(
    name: str, site: Site, serve_tls: Serve, authority: Path, load: Load
) -> None:
    secure = site.over_tls("http/1.1")
    serve_tls(secure, h2=False, versions="TLSv1.2")
    loaded, _ = load(name, secure, tfo=True, tls=authority, tls_version="1.2")
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
