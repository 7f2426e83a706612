"""One contract for every client: what is asked, what is reported, what is on the wire."""

from __future__ import annotations

import dataclasses
import time

import pytest

from testbed.client import CLIENTS
from testbed.client.interface import LoadTimeoutError
from tests.client.conftest import TIMEOUT_S
from tests.client.har_model import Load
from tests.client.replay import Serve
from tests.client.sites import Site

pytestmark = [pytest.mark.root, pytest.mark.browser]

BUSY = {"task_s", "script_s", "layout_s", "style_s", "compile_s"}
SPENT = {"cpu_s", "load_cpu_s", "driver_cpu_s", "launch_s", "close_s", "wall_s", "queued_s"}


@pytest.fixture(params=sorted(CLIENTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("tfo", [True, False], ids=["tfo", "control"])
def test_loads_the_whole_page(name: str, tfo: bool, site: Site, serve: Serve, load: Load) -> None:
    replay = serve(site)
    loaded, har = load(name, site, tfo=tfo)
    urls = sorted(entry.url for entry in site.entries)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    assert sorted(replay.asked) == urls
    assert sorted(request.url for request in loaded.requests) == urls
    assert sorted(entry.request.url for entry in har.log.entries) == urls
    statuses = {entry.url: entry.status for entry in site.entries}
    assert {request.url: request.status for request in loaded.requests} == statuses
    assert {e.request.url: e.response.status for e in har.log.entries} == statuses
    assert loaded.client == name
    assert loaded.client_version
    assert 0.0 < loaded.plt_ms < TIMEOUT_S * 1000
    for request in loaded.requests:
        assert 0.0 <= request.start_ms <= request.end_ms <= loaded.plt_ms + 1.0, request
    payloads = replay.syns.payloads
    assert len(payloads) >= 2
    if tfo:
        assert all(payload > 0 for payload in payloads)
    else:
        assert not any(payloads)


def test_reports_refused_requests(name: str, site: Site, serve: Serve, load: Load) -> None:
    replay = serve(site)
    refused = "http://img.page.test/3.png"
    replay.refused.add(refused)
    loaded, har = load(name, site, tfo=False)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), (refused,))
    assert {request.url: request.status for request in loaded.requests}[refused] == 404
    assert {e.request.url: e.response.status for e in har.log.entries}[refused] == 404


def test_reports_broken_connections(name: str, site: Site, serve: Serve, load: Load) -> None:
    """A client may try again, and fail again; wget2 then gives the whole host up."""
    replay = serve(site)
    cut = "http://img.page.test/5.png"
    replay.cut.add(cut)
    loaded, har = load(name, site, tfo=False)
    assert cut in loaded.failed
    assert {request.url: request.status for request in loaded.requests}[cut] == 0
    assert {e.request.url: e.response.status for e in har.log.entries}[cut] == 0


@pytest.mark.parametrize("name", ["chromium", "graph"])
def test_reports_what_was_never_asked(name: str, site: Site, serve: Serve, load: Load) -> None:
    orphan = "http://www.page.test/orphan.png"
    site.add(orphan, b"", "image/png", parent="http://www.page.test/nowhere.html")
    serve(site)
    loaded, _ = load(name, site, tfo=False)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((orphan,), (), ())


def test_reports_what_the_archive_does_not_hold(site: Site, serve: Serve, load: Load) -> None:
    """Only a browser reads the page; the other two ask for what the archive lists."""
    serve(site)
    unlisted = "http://img.page.test/4.png"
    listed = [entry for entry in site.entries if entry.url != unlisted]
    loaded, _ = load("chromium", dataclasses.replace(site, entries=listed), tfo=False)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (unlisted,), ())


@pytest.mark.nightly(but="graph")
def test_a_stalled_server_is_a_timeout(name: str, site: Site, serve: Serve, load: Load) -> None:
    replay = serve(site)
    replay.stalled.add("http://img.page.test/2.png")
    with pytest.raises(LoadTimeoutError):
        load(name, site, tfo=False, timeout_s=3.0)


@pytest.mark.parametrize("trait", ["closing", "chunked"])
def test_server_traits(name: str, trait: str, site: Site, serve: Serve, load: Load) -> None:
    replay = serve(site)
    setattr(replay, trait, True)
    loaded, _ = load(name, site, tfo=True)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    if trait == "closing":
        assert len(replay.syns.payloads) == len(site.entries)


def test_what_outlives_the_load_event(site: Site, serve: Serve, load: Load) -> None:
    """fetch() holds no load event back: one late answer, one late request, one endless beacon."""
    late, later, endless = (f"http://www.page.test/{name}" for name in ("late", "later", "endless"))
    page = (
        b"<!doctype html><script>fetch('/late').then(() => fetch('/later'));"
        b"addEventListener('load', () => setTimeout(() => fetch('/endless'), 0));</script>"
    )
    small = Site(site.root)
    small.add(small.root, page, "text/html", how="root")
    small.add(late, b"x", "text/plain", how="script")
    small.add(later, b"x", "text/plain", how="script")
    small.add(endless, b"x", "text/plain", how="script", after_load=True)
    replay = serve(small)
    replay.held[late] = endless  # which is asked for after the load event
    replay.stalled.add(endless)
    loaded, har = load("chromium", small, tfo=False)
    assert (loaded.missing, loaded.extra, loaded.failed) == ((), (), ())
    urls = {small.root, late, later, endless}
    assert {request.url for request in loaded.requests} == urls
    assert {entry.request.url for entry in har.log.entries} == urls
    assert {request.url for request in loaded.after_load} == {later, endless}
    ended = {request.url: request.end_ms for request in loaded.requests}
    assert ended[late] > loaded.plt_ms


def test_only_a_browser_tells_what_it_cost(name: str, site: Site, serve: Serve, load: Load) -> None:
    serve(site)
    loaded, _ = load(name, site, tfo=False)
    if name != "chromium":
        assert loaded.browser == {}
        return
    assert set(loaded.browser) == BUSY | SPENT
    assert all(seconds >= 0.0 for seconds in loaded.browser.values())
    assert loaded.browser["task_s"] >= loaded.browser["script_s"] > 0.0
    assert loaded.browser["cpu_s"] >= loaded.browser["load_cpu_s"]


def test_no_clock_is_read_before_a_load_that_waits_for_its_moment(
    site: Site, serve: Serve, load: Load
) -> None:
    """In virtual time it would move the result, and a start costs nothing there."""
    serve(site)
    loaded, _ = load("chromium", site, tfo=False, wait_until_ns=time.time_ns())
    assert set(loaded.browser) == BUSY | {"cpu_s"}
