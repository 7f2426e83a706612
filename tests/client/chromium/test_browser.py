"""Which browser there is, and whether it can have its own sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.client.chromium import browser


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
