"""Comparison of what was asked with what the page holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.archive.reading import Archive, split_url
from testbed.client.page_coverage import (
    check_protocols,
    compare,
    judge_coverage,
    list_due,
    measure_coverage,
    unreached,
)
from testbed.model import PageCoverage, PageLoad, Replay, RequestTiming, Substitution
from tests.client.sites import Site

REMEDY = "; set allow_misses = true"
LACK = "; the recording lacks them: record the page live, which keeps failures too, or set"
PIN = "; if scripts make its URLs of times or random numbers, record it with --pin, or set"
ROOT = "http://a.test/"
PAGE, OLD, NEW = "https://a.test/", "https://a.test/x?t=1", "https://a.test/x?t=2"
GONE = "https://a.test/gone"
LOAD = PageLoad("graph", "1", 100.0, ())
ALL = Replay(2)
SWAPPED = Replay(1, (Substitution(f"GET {NEW}", f"GET {OLD}"),))
OFFERS = {"https://a.test": "HTTP/2.0", "https://b.test:8443": "HTTP/1.1"}


def asked(url: str, status: int = 200) -> RequestTiming:
    return RequestTiming(url=url, status=status, start_ms=0.0, end_ms=1.0)


def site_of(*urls: str, **more: Any) -> Site:
    """A page of these, of which the last has ``more``."""
    site = Site()
    for place, url in enumerate(urls, 1):
        site.add(url, b"", "text/html", **(more if place == len(urls) else {}))
    return site


def test_repetitions_count() -> None:
    page = site_of(ROOT, f"{ROOT}x", f"{ROOT}x", f"{ROOT}y").archive()
    seen = [asked("http://a.test/#top"), asked("http://a.test/x"), asked("http://a.test/z")]
    coverage = compare(page, [*seen, asked("http://a.test/")])
    assert coverage.missing == ("http://a.test/x", "http://a.test/y")
    assert coverage.extra == ("http://a.test/z", "http://a.test/")
    assert coverage.failed == ()


def test_a_recorded_error_is_no_failure() -> None:
    site = site_of(ROOT, f"{ROOT}gone", status=404)
    seen = [asked("http://a.test/", 500), asked("http://a.test/gone", 404)]
    assert compare(site.archive(), seen).failed == ("http://a.test/",)
    assert compare(site.archive(), [asked("http://a.test/", 0)]).failed == ("http://a.test/",)


def test_a_revalidation_is_optional() -> None:
    page, root = site_of(ROOT, ROOT, status=304).archive(), asked("http://a.test/")
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
    page = site_of(ROOT, f"{ROOT}later", after_load=True).archive()
    root = asked("http://a.test/")
    assert compare(page, [root]).missing == ()
    later = asked("http://a.test/later")
    assert compare(page, [root, later]).extra == ()
    assert compare(page, [root, later, later]).extra == ("http://a.test/later",)
    assert compare(page, [root, asked("http://a.test/other")]).extra == ("http://a.test/other",)
    assert compare(page, [later]).missing == ("http://a.test/",)


def test_how_much_of_a_page_was_asked_for() -> None:
    site = Site()
    site.add(PAGE, bytes(100), "text/html")
    site.add(OLD, bytes(50), "image/gif", made_up=True)
    for made_up in (True, False):
        site.add(GONE, bytes(7), "text/css", made_up=made_up)
    site.add("https://a.test/later", bytes(900), "image/gif", after_load=True, made_up=True)
    page = site.archive()
    head = page.entries[0].headers_size or 0
    due, due_bytes = 4, 164 + 4 * head
    whole = PageCoverage(due, due_bytes, due, due_bytes, 2, 57 + 2 * head)
    assert measure_coverage(page, LOAD, ALL) == whole
    load = replace(LOAD, missing=(OLD, GONE))
    part = PageCoverage(due, due_bytes, 2, 107 + 2 * head, 0, 0)
    assert measure_coverage(page, load, ALL) == part
    # What was answered in the place of another is the same bytes.
    swapped = PageCoverage(due, due_bytes, 3, 157 + 3 * head, 1, 50 + head)
    assert measure_coverage(page, load, SWAPPED) == swapped


def judge(load: PageLoad, replay: Replay, allow_misses: bool = False, status: int = 200) -> str:
    """The reason, or ``counts``."""
    entries = site_of(PAGE, OLD, status=status).archive().entries
    return judge_coverage(load, replay, entries, allow_misses) or "counts"


def missing_page(*urls: str) -> tuple[PageLoad, Replay]:
    """A load that asked for ``urls``, which the page does not hold."""
    load = replace(LOAD, extra=urls, failed=urls)
    return load, replace(ALL, missed=tuple(f"GET {url}" for url in urls))


def test_a_load_of_the_page_counts_also_where_a_request_was_answered_inexactly() -> None:
    assert judge(LOAD, ALL) == "counts"
    assert judge(replace(LOAD, missing=(OLD,), extra=(NEW,)), SWAPPED) == "counts"


def test_an_inexact_answer_excuses_one_request_of_each_kind() -> None:
    load = replace(LOAD, missing=(OLD, OLD), extra=(NEW, NEW))
    assert judge(load, SWAPPED) == (
        f"1 request of the recording not made: {OLD}; "
        f"1 request made more often than recorded: {NEW}{REMEDY}"
    )


@pytest.mark.parametrize(
    ("urls", "reported"),
    [((GONE,), f"1 request missed: GET {GONE}"),
     (tuple(f"{GONE}{i}" for i in range(3)), "3 requests missed: GET https://a.test/gone0, "),
     (tuple(f"{GONE}{i}" for i in range(4)), ", GET https://a.test/gone2 ...")],
)  # fmt: skip
def test_a_miss_fails_unless_misses_are_allowed(urls: tuple[str, ...], reported: str) -> None:
    load, replay = missing_page(*urls)
    reason = judge(load, replay)
    assert reported in reason
    assert reason.endswith(f"{LACK} allow_misses = true")
    assert "failed:" not in reason and "more often" not in reason
    assert judge(load, replay, allow_misses=True) == "counts"


def test_a_miss_that_the_client_does_not_tell_fails_too() -> None:
    """A preflight, say: only the server has seen it."""
    reason = judge(LOAD, replace(ALL, missed=(f"OPTIONS {OLD}",)))
    assert reason == f"1 request missed: OPTIONS {OLD}{LACK} allow_misses = true"


@pytest.mark.parametrize(
    ("load", "reported"),
    [(replace(LOAD, missing=(OLD,)), f"1 request of the recording not made: {OLD}"),
     (replace(LOAD, extra=(OLD,)), f"1 request made more often than recorded: {OLD}")],
)  # fmt: skip
def test_the_recorded_set_is_asked_for_unless_misses_are_allowed(
    load: PageLoad, reported: str
) -> None:
    assert judge(load, ALL) == reported + REMEDY
    assert judge(load, ALL, allow_misses=True) == "counts"


@pytest.mark.parametrize("allow_misses", [False, True])
def test_a_request_that_failed_for_another_reason_never_counts(allow_misses: bool) -> None:
    load, replay = missing_page(GONE)
    load = replace(load, failed=(*load.failed, GONE, PAGE))
    reason = judge(load, replay, allow_misses)
    assert reason.endswith(
        f"2 requests failed: {GONE} (recorded: nothing, here: nothing), {PAGE} (recorded: 200, "
        "here: nothing)"
    )
    assert (LACK in reason) is not allow_misses


@pytest.mark.parametrize(("status", "reason"), [
    (404, "counts"), (200, f"1 request failed: {NEW} (recorded: nothing, here: nothing)"),
])  # fmt: skip
def test_a_recorded_error_is_no_failure_under_another_name(status: int, reason: str) -> None:
    load = replace(LOAD, missing=(OLD,), extra=(NEW,), failed=(NEW,))
    assert judge(load, SWAPPED, status=status) == reason


def test_all_complaints_are_reported_at_once() -> None:
    load, replay = missing_page(GONE)
    load = replace(load, missing=(OLD,), extra=(GONE, PAGE), failed=(GONE, PAGE))
    assert judge(load, replay) == (
        f"1 request missed: GET {GONE}; 1 request of the recording not made: {OLD}; "
        f"1 request made more often than recorded: {PAGE}{PIN} allow_misses = true; "
        f"1 request failed: {PAGE} (recorded: 200, here: nothing)"
    )
    pinned = judge(replace(load, pinned=True), replay)
    assert f"recorded: {PAGE}{REMEDY}; 1 request failed" in pinned


DEAD, CUT, MUTE, RULED = "http://dead.test/x", f"{PAGE}cut", f"{PAGE}mute", f"{PAGE}ruled"


def failing_page() -> Archive:
    """A page whose host is there, with one request of each kind that got no answer."""
    page = site_of(PAGE).archive()
    told = {
        DEAD: "net::ERR_NAME_NOT_RESOLVED", CUT: "net::ERR_CONNECTION_RESET",
        MUTE: "net::ERR_ABORTED", RULED: "net::ERR_FAILED",
    }  # fmt: skip
    failures = []
    for url, failure in told.items():
        scheme, host, port, path = split_url(url)
        failures.append(replace(page.entries[0], url=url, scheme=scheme, host=host, port=port,
                                path=path, status=0, failure=failure))  # fmt: skip
    return replace(page, failures=tuple(failures))


def ended(url: str, failure: str | None) -> RequestTiming:
    return replace(asked(url, 0), failure=failure)


@pytest.mark.parametrize(
    ("url", "failure", "expected"),
    [(DEAD, "net::ERR_NAME_NOT_RESOLVED", True),
     (f"{DEAD}?t=2", "net::ERR_NAME_NOT_RESOLVED", True),
     (DEAD, "net::ERR_CONNECTION_REFUSED", False), (DEAD, None, False),
     (CUT, "net::ERR_EMPTY_RESPONSE", True), (CUT, "net::ERR_HTTP2_PROTOCOL_ERROR", True),
     (f"{CUT}?t=2", "net::ERR_CONNECTION_RESET", False), (CUT, "net::ERR_TIMED_OUT", False),
     (MUTE, "net::ERR_ABORTED", True), (MUTE, None, True), (PAGE, None, False),
     (PAGE, "net::ERR_CONNECTION_RESET", False), (PAGE, "net::ERR_NAME_NOT_RESOLVED", False),
     (PAGE, "net::ERR_ABORTED", True), (PAGE, "csp", True), (PAGE, "net::ERR_FAILED", True)],
)  # fmt: skip
def test_a_failure_counts_unless_it_was_recorded_or_is_the_pages_own(
    url: str, failure: str | None, expected: bool
) -> None:
    assert (compare(failing_page(), [ended(url, failure)]).failed == ()) is expected


def test_what_failed_need_not_be_asked_for() -> None:
    page = failing_page()
    assert compare(page, [asked(PAGE)]).missing == ()
    assert compare(page, [asked(PAGE), asked(CUT), asked(CUT)]).extra == (CUT,)
    kept = ended("https://elsewhere.test/", "csp")
    assert compare(page, [asked(PAGE), kept]).extra == () == unreached([kept], set())


def test_a_failure_says_how_it_was_recorded_and_how_it_ended_here() -> None:
    page, here = failing_page(), ended(CUT, "net::ERR_NAME_NOT_RESOLVED")
    load = replace(LOAD, requests=(asked(PAGE, 503), here), failed=(PAGE, CUT))
    assert judge_coverage(load, ALL, page.recorded, allow_misses=True) == (
        f"2 requests failed: {PAGE} (recorded: 200, here: 503), "
        f"{CUT} (recorded: net::ERR_CONNECTION_RESET, here: net::ERR_NAME_NOT_RESOLVED)"
    )


def test_where_requests_led_that_failed() -> None:
    page = failing_page()
    assert [each.url for each in page.served] == [PAGE, CUT, MUTE, RULED]
    assert (page.hosts, page.unserved) == (("a.test",), ())
    assert page.dead_ends == {("dead.test", 80)}
    silent, refusing = (
        replace(page.failures[0], host=host, failure=f"net::ERR_CONNECTION_{how}")
        for host, how in (("silent.test", "TIMED_OUT"), ("refusing.test", "REFUSED"))
    )
    page = replace(page, failures=(silent, refusing))
    assert (page.unserved, page.hosts) == (("refusing.test",), ("a.test", "silent.test"))
    refusing = replace(refusing, host="a.test", port=443)
    page = replace(page, failures=(refusing,))
    assert (page.unserved, page.served) == ((), page.recorded)
    assert not page.dead_ends


def test_a_module_is_asked_for_once() -> None:
    site = site_of(PAGE)
    for _ in range(2):
        site.add(f"{PAGE}m.js", b"1", "text/javascript")
    assert compare(site.archive(), [asked(PAGE), asked(f"{PAGE}m.js")]).missing == ()
    assert compare(site.archive(), [asked(PAGE)]).missing == (f"{PAGE}m.js",) * 2


@pytest.mark.parametrize(
    ("path", "how", "mime", "due"),
    [("favicon.ico", "other", "text/html", False), ("i.png", "other", "image/x-icon", False),
     ("favicon.ico", "parser", "image/x-icon", True), ("i.png", "other", "image/png", True)],
)  # fmt: skip
def test_no_icon_of_a_window_is_due(path: str, how: str, mime: str, due: bool) -> None:
    page = site_of(PAGE).archive()
    (_, _, _, path), url = split_url(f"{PAGE}{path}"), f"{PAGE}{path}"
    icon = replace(page.entries[0], url=url, path=path, how=how, mime=mime)
    assert list_due(replace(page, entries=(*page.entries, icon))) == [PAGE, *([url] if due else [])]


@pytest.mark.parametrize(
    ("url", "missed"),
    [("https://a.test/x", False), ("https://A.test:443/x#part", False), ("http://a.test/x", False),
     ("http://a.test:8080/x", True), ("https://b.test/x", True), ("https://a.test:99999/", True),
     ("https://[a.test/", True), ("data:text/plain,x", False), ("blob:https://b.test/1", False)],
)  # fmt: skip
def test_what_no_server_saw(url: str, missed: bool) -> None:
    served = {("a.test", 80), ("a.test", 443)}
    request = RequestTiming(url, 0, 0.0, 1.0)
    expected = (f"(unreached) {url.partition('#')[0]}",) if missed else ()
    assert unreached((request,), served) == expected


@pytest.mark.parametrize(
    ("spoken", "problem"),
    [("https://a.test HTTP/2.0", ""), ("https://b.test:8443 HTTP/1.1", ""),
     ("http://a.test HTTP/1.1", ""),
     ("https://a.test HTTP/1.1", "https://a.test: 4 requests came over HTTP/1.1, asked was"),
     ("https://b.test:8443 HTTP/2.0", "4 requests came over HTTP/2.0, asked was HTTP/1.1")],
)  # fmt: skip
def test_what_each_origin_was_spoken_to_in(spoken: str, problem: str) -> None:
    found = check_protocols(Replay(4, protocols={spoken: 4}), OFFERS)
    assert len(found) == bool(problem)
    assert problem in "".join(found)
