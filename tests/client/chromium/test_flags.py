"""The browser's command line, which browser there is, and whether it can have its own sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import MissingError
from testbed.client.chromium import browser
from testbed.client.chromium.flags import LAB_AUTHORITY, browser_arguments
from testbed.model import Opening
from testbed.pages.authority import SPKI_NAME, make_authority

PROFILE = Path("/profile")


def arguments(**more: object) -> list[str]:
    usual: dict[str, object] = {"sandbox": True, "filter_calls": True}
    return browser_arguments(PROFILE, **(usual | {"authority": None} | more))  # type: ignore[arg-type]


def test_a_sandbox_that_cannot_be_is_not_asked_for() -> None:
    assert "--no-sandbox" not in arguments()
    assert "--disable-seccomp-filter-sandbox" not in arguments()
    assert "--disable-seccomp-filter-sandbox" in arguments(filter_calls=False)
    assert {"--no-sandbox", "--no-zygote"} <= set(arguments(sandbox=False, filter_calls=False))
    assert "--disable-seccomp-filter-sandbox" not in arguments(sandbox=False, filter_calls=False)


def test_trust_needs_a_profile() -> None:
    given = arguments(authority="key=")
    assert "--ignore-certificate-errors-spki-list=key=" in given
    assert "--user-data-dir=/profile" in given
    assert not [flag for flag in arguments() if "certificate" in flag]


def test_the_authority_is_that_of_every_page() -> None:
    for hosts in (["www.page.test"], ["a.test", "b.test"]):
        assert make_authority(hosts)[SPKI_NAME].decode() == LAB_AUTHORITY


def test_features_are_given_once_each() -> None:
    names = [flag.partition("=")[0] for flag in arguments()]
    assert len(names) == len(set(names))


def test_only_loads_keep_nothing_on_disk() -> None:
    assert "--incognito" in arguments(in_memory=True)
    assert "--incognito" not in arguments()


def test_what_is_not_asked_for_changes_no_flag() -> None:
    usual = arguments()
    assert "--disable-quic" in usual
    assert not [flag for flag in usual if "EarlyData" in flag]
    assert arguments(opening=Opening("chromium", ip="6", key_share="x25519")) == usual


def test_quic_is_forced_on_all_origins() -> None:
    flags = arguments(opening=Opening("chromium", quic=True))
    assert "--disable-quic" not in flags
    assert "--origin-to-force-quic-on=*" in flags
    # A question for HTTPS records would be another way to learn of QUIC, with packets of its own.
    assert [flag for flag in flags if "--disable-features=UseDnsHttpsSvcb," in flag]


def test_early_data_is_a_feature() -> None:
    (enabled,) = [
        flag
        for flag in arguments(opening=Opening("chromium", early_data=True))
        if flag.startswith("--enable-features=")
    ]
    assert enabled.endswith(",EnableTLS13EarlyData")


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
