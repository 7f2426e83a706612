"""Which browser, with which sandbox, and what is read from the driver's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import MissingError
from testbed.client.chromium import browser, read_load
from testbed.client.interface import LoadError, LoadOrder
from tests.client.sites import Site


@pytest.fixture
def order(site: Site, tmp_path: Path) -> LoadOrder:
    return LoadOrder(
        archive=site.archive(),
        prefix=(),
        tfo=True,
        think_time="none",
        bundle=tmp_path,
        scratch=tmp_path,
        out=tmp_path,
        timeout_s=1.0,
    )


def request(url: str, **more: Any) -> dict[str, Any]:
    plain = {"url": url, "status": 200, "start_ms": 1.0, "end_ms": 2.0, "transfer_bytes": 9}
    plain |= {"connection": "1", "initiator": "parser", "protocol": "http/1.1"}
    return plain | {"dns_ms": None, "connect_ms": None} | more


def result(*requests: dict[str, Any]) -> dict[str, Any]:
    timing = {"plt_ms": 50.5, "plt_rounded_ms": 51}
    return {"browser": "HeadlessChrome/1", "timing": timing, "pinned": False,
            "cost": {"cpu_s": 1, "task_s": 0.25}, "requests": list(requests)}  # fmt: skip


def test_a_request_that_had_not_ended_has_failed(order: LoadOrder) -> None:
    late = "http://www.page.test/s.js"
    load = read_load(result(request("http://www.page.test/"), request(late, end_ms=None)), order)
    assert load.plt_ms == 50.5
    assert load.failed == (late,)
    assert load.requests[1].end_ms == 50.5
    assert load.browser == {"cpu_s": 1.0, "task_s": 0.25}
    assert "http://www.page.test/s.css" in load.missing


def test_what_a_request_waited_for(order: LoadOrder) -> None:
    root = request("http://www.page.test/", dns_ms=20.5, connect_ms=100.25)
    load = read_load(result(root, request("http://www.page.test/s.css")), order)
    assert (load.requests[0].dns_ms, load.requests[0].connect_ms) == (20.5, 100.25)
    assert (load.requests[1].dns_ms, load.requests[1].connect_ms) == (None, None)


def test_no_request_at_all(order: LoadOrder) -> None:
    with pytest.raises(LoadError, match="no request"):
        read_load(result(), order)


def test_the_named_browser_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(browser.BROWSER_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(MissingError, match=browser.BROWSER_VARIABLE):
        browser.find_browser()
    program = tmp_path / "shell"
    program.touch(mode=0o755)
    monkeypatch.setenv(browser.BROWSER_VARIABLE, str(program))
    assert browser.find_browser() == program


def test_no_browser_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(browser.BROWSER_VARIABLE, raising=False)
    monkeypatch.setattr(browser, "KNOWN_PATHS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="chromium-headless-shell"):
        browser.find_browser()


def test_what_forbids_the_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    namespaces, forbidding = tmp_path / "namespaces", tmp_path / "forbidding"
    monkeypatch.setattr(browser, "USER_NAMESPACES", namespaces)
    monkeypatch.setattr(browser, "FORBIDDING", ((forbidding, "1"),))
    assert "root" in str(browser.sandbox_obstacle(0))
    assert "no user namespaces" in str(browser.sandbox_obstacle(1000))
    namespaces.write_text("100\n")
    assert browser.sandbox_obstacle(1000) is None
    forbidding.write_text("1\n")
    assert "forbidding is 1" in str(browser.sandbox_obstacle(1000))


def test_user_mode_linux_cannot_filter_calls(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("vendor_id\t: User Mode Linux\n")
    assert not browser.filters_calls(cpuinfo)
    cpuinfo.write_text("vendor_id\t: GenuineIntel\n")
    assert browser.filters_calls(cpuinfo)
