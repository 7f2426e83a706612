"""A page without hosts: what they led to is not due either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from testbed.archive.reading import Archive, Entry, split_url

WWW, TAG, CDN, API = (f"http://{name}/" for name in (
    "www.shop.test", "tags.tracker.test", "cdn.tracker.test", "api.shop.test"))  # fmt: skip


def entry(url: str, parent: str | None) -> Entry:
    scheme, host, port, path = split_url(url)
    return Entry(
        "0", url, scheme, host, port, path, "GET", 200, "http/1.1", (), None, 0, 0, 0, "", None,
        None, parent, parent, "other", None, None, None, 0, after_load=False,
    )  # fmt: skip


PAGE = Archive("shop", "", WWW, (
    entry(WWW, None), entry(f"{TAG}a.js", WWW), entry(f"{API}of-tag", f"{TAG}a.js"),
    entry(f"{API}more-of-tag", f"{API}of-tag"), entry(f"{API}own", WWW), entry(f"{CDN}p", WWW),
), "")  # fmt: skip


def due(page: Archive) -> Iterable[str]:
    return [each.url for each in page.entries if not each.after_load]


def test_words_mean_hosts_and_those_below_them() -> None:
    assert PAGE.list_blocked("tags.tracker.test") == ("tags.tracker.test",)
    assert PAGE.list_blocked("tracker.test api.shop.test") == (
        "tags.tracker.test", "api.shop.test", "cdn.tracker.test",
    )  # fmt: skip
    assert PAGE.list_blocked("third-parties") == ("tags.tracker.test", "cdn.tracker.test")
    assert PAGE.list_blocked("racker.test") == PAGE.list_blocked("") == ()


def test_what_they_led_to_is_not_due() -> None:
    assert due(PAGE.without(PAGE.list_blocked("third-parties"))) == [WWW, f"{API}own"]
    assert PAGE.without(()) is PAGE
    assert PAGE.without(["none.test"]) == replace(PAGE)
