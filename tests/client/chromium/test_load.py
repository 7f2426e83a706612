"""A page load of the model from what was seen of a visit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.client.chromium import read_load
from testbed.client.chromium.milestones import milestones_of
from testbed.client.chromium.traffic import BrowserRequest, BrowserTraffic
from testbed.client.chromium.visit import Visit
from testbed.client.interface import LoadError, LoadOrder
from testbed.model import PageLoad
from tests.client.chromium.test_traffic import answered, finished, sent
from tests.client.sites import Site

START_S = 10.0
ROOT = "http://www.page.test/"


@pytest.fixture
def order(site: Site, tmp_path: Path) -> LoadOrder:
    return LoadOrder(archive=site.archive(), prefix=(), tfo=True, think_time="none",
                     bundle=tmp_path, scratch=tmp_path, out=tmp_path, timeout_s=1.0)  # fmt: skip


def read(order: LoadOrder, *events: dict[str, Any]) -> PageLoad:
    traffic = BrowserTraffic()
    traffic.add(events)
    requests: list[BrowserRequest] = traffic.requests()
    seen = Visit(
        *(50.5, 0, START_S, traffic.events, requests, ()), milestones_of(None, 5.0), {"cpu_s": 1.0}
    )
    return read_load(seen, "HeadlessChrome/1", order)


def test_a_request_that_had_not_ended_has_failed(order: LoadOrder) -> None:
    late = "http://www.page.test/s.js"
    root = (sent("1", ROOT, 10.0), answered("1", 10.01), finished("1", 10.02))
    load = read(order, *root, sent("2", late, 10.03), answered("2", 10.04))
    assert (load.plt_ms, load.client_version) == (50.5, "HeadlessChrome/1")
    assert load.failed == (late,)
    assert (load.requests[1].status, load.requests[1].end_ms) == (0, 50.5)
    assert load.browser == {"cpu_s": 1.0}
    assert (load.ttfb_ms, load.cls) == (5.0, None)
    assert "http://www.page.test/s.css" in load.missing


def test_what_a_request_waited_for(order: LoadOrder) -> None:
    timing = {"dnsStart": 0, "dnsEnd": 20.5, "connectStart": 20.5, "connectEnd": 120.75}
    root = (sent("1", ROOT, 10.0), answered("1", 10.01, timing=timing), finished("1", 10.02))
    load = read(order, *root, sent("2", f"{ROOT}s.css", 10.0))
    assert (load.requests[0].dns_ms, load.requests[0].connect_ms) == (20.5, 100.25)
    assert (load.requests[1].dns_ms, load.requests[1].connect_ms) == (None, None)


def test_no_request_at_all(order: LoadOrder) -> None:
    with pytest.raises(LoadError, match="no request"):
        read(order)
