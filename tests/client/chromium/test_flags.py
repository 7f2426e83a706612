"""The browser's command line."""

from __future__ import annotations

from pathlib import Path

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
