"""Comparison of what was asked with what the page holds."""

from __future__ import annotations

from testbed.client.coverage import compare
from testbed.model import RequestTiming
from tests.client.sites import Site


def asked(url: str, status: int = 200) -> RequestTiming:
    return RequestTiming(url=url, status=status, start_ms=0.0, end_ms=1.0)


def test_repetitions_count() -> None:
    site = Site()
    for url in ("http://a.test/", "http://a.test/x", "http://a.test/x", "http://a.test/y"):
        site.add(url, b"", "text/html")
    page = site.archive()
    seen = [asked("http://a.test/#top"), asked("http://a.test/x"), asked("http://a.test/z")]
    coverage = compare(page, [*seen, asked("http://a.test/")])
    assert coverage.missing == ("http://a.test/x", "http://a.test/y")
    assert coverage.extra == ("http://a.test/z", "http://a.test/")
    assert coverage.failed == ()


def test_a_recorded_error_is_no_failure() -> None:
    site = Site()
    site.add("http://a.test/", b"", "text/html")
    site.add("http://a.test/gone", b"", "text/html", status=404)
    seen = [asked("http://a.test/", 500), asked("http://a.test/gone", 404)]
    assert compare(site.archive(), seen).failed == ("http://a.test/",)
    assert compare(site.archive(), [asked("http://a.test/", 0)]).failed == ("http://a.test/",)


def test_a_revalidation_is_optional() -> None:
    site = Site()
    site.add("http://a.test/", b"", "text/html")
    site.add("http://a.test/", b"", "text/html", status=304)
    page, root = site.archive(), asked("http://a.test/")
    assert compare(page, [root]).missing == compare(page, [root, root]).extra == ()
    assert compare(page, [root, root, root]).extra == ("http://a.test/",)
    assert compare(page, []).missing == ("http://a.test/",)


def test_an_event_stream_is_asked_for_again_when_it_ends() -> None:
    site = Site()
    site.add("http://a.test/events", b"", "text/event-stream")
    events = asked("http://a.test/events")
    assert compare(site.archive(), [events] * 3).extra == ()
    assert compare(site.archive(), []).missing == ("http://a.test/events",)


def test_what_was_recorded_after_the_load_event_is_optional() -> None:
    site = Site()
    site.add("http://a.test/", b"", "text/html")
    site.add("http://a.test/later", b"", "image/gif", after_load=True)
    page, root = site.archive(), asked("http://a.test/")
    assert compare(page, [root]).missing == ()
    later = asked("http://a.test/later")
    assert compare(page, [root, later]).extra == ()
    assert compare(page, [root, later, later]).extra == ("http://a.test/later",)
    assert compare(page, [root, asked("http://a.test/other")]).extra == ("http://a.test/other",)
    assert compare(page, [later]).missing == ("http://a.test/",)
