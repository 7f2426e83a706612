"""Where a load begins and ends in a file, and what is told of a file that has none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.tests.importing.conftest import Import
from wings.pages.tests.importing.site import ROOT, SITE, Sent, devtools, mitmproxy, moment

LATER = "https://later.example/"


def at(document: dict[str, Any], *starts_ms: float) -> dict[str, Any]:
    """The document with requests that start then, as many as there are times."""
    entries = document["log"]["entries"][: len(starts_ms)]
    for entry, start in zip(entries, starts_ms, strict=True):
        entry["startedDateTime"] = moment(start)
    return {"log": document["log"] | {"entries": entries}}


def urls(recording: Any) -> list[str]:
    return [exchange.url for exchange in recording.exchanges]


def test_a_pause_ends_the_load_in_the_file_of_a_proxy(imported: Import) -> None:
    document = at(mitmproxy(), 0, 50, 120, 121, 130, 180, 300_000)
    recording = imported(document)
    assert urls(recording) == [sent.url for sent in SITE[:-1]]
    note = next(note for note in recording.notes if "after a pause of more than 10 s" in note)
    assert note.endswith(f": 1 ({SITE[-1].url}).")


def test_what_is_in_flight_is_no_pause(imported: Import) -> None:
    document = at(mitmproxy(), 0, 50, 120, 121, 130, 180, 40_000)
    document["log"]["entries"][2]["time"] = 35_000
    assert len(urls(imported(document))) == len(SITE)


def test_a_pause_ends_nothing_where_the_file_has_the_load_event(imported: Import) -> None:
    recording = imported(at(devtools(), 0, 50, 120, 121, 130, 180, 300_000))
    assert len(recording.exchanges) == len(SITE)
    assert recording.exchanges[-1].after_load


def test_a_session_begins_with_the_page_and_counts_from_it(imported: Import) -> None:
    document = mitmproxy()
    beacon = deepcopy(document["log"]["entries"][5])
    beacon["request"]["url"] = "https://system.example/ping"
    document["log"]["entries"].insert(0, beacon)
    recording = imported(at(document, 0, *(200_000 + sent.start_ms for sent in SITE)), url=ROOT)
    assert urls(recording)[0] == ROOT
    assert "https://system.example/ping" not in urls(recording)
    assert recording.exchanges[0].start_ms == 0
    assert recording.exchanges[-1].start_ms == SITE[-1].start_ms - SITE[1].start_ms
    assert any("made before the page's own" in note and ": 2 (" in note for note in recording.notes)


def test_a_request_that_is_a_little_earlier_than_its_page_keeps_its_time(imported: Import) -> None:
    recording = imported(at(devtools(), -15, 50, 120, 121, 130, 180, 900))
    assert [recording.exchanges[0].start_ms, recording.exchanges[1].start_ms] == [0, 65]
    assert recording.load_ms == 715


@pytest.mark.parametrize("asked", [None, ROOT])
def test_a_page_that_was_asked_for_by_post_is_asked_for_by_get(
    asked: str | None, imported: Import
) -> None:
    document = devtools(SITE[1:])
    document["log"]["entries"][0]["request"] |= {"method": "POST", "bodySize": 44}
    recording = imported(document, **({"url": asked} if asked else {}))
    root = recording.exchanges[0]
    assert (root.url, root.method, root.request_body_size) == (ROOT, "GET", 0)
    assert any("another method, made GET: 1 (POST https" in note for note in recording.notes)


def test_a_post_before_the_page_is_not_the_page(imported: Import) -> None:
    login = Sent("https://www.site.example/login", "text/html", b"", status=302, location=ROOT)
    document = devtools((login, *SITE[1:]))
    document["log"]["entries"][0]["request"]["method"] = "POST"
    recording = imported(document)
    assert urls(recording) == [sent.url for sent in SITE[1:]]


def test_a_page_without_a_document_names_file_address_and_remedy(imported: Import) -> None:
    document = devtools((SITE[5], *SITE[1:5]), bodies=False)
    document["log"]["entries"][0]["startedDateTime"] = moment(0)
    with pytest.raises(ConfigurationError) as caught:
        imported(document, url=SITE[5].url)
    first = caught.value.problems[0]
    assert "load.har: " in first
    assert f"{SITE[5].url}: the page itself is not text/html (image/png, status 200)" in first
    assert first.endswith(f"begin with a document: --url {ROOT}")


def test_a_document_of_no_known_type_is_one(imported: Import) -> None:
    document = devtools(SITE[1:], bodies=False)
    response = document["log"]["entries"][0]["response"]
    response["headers"] = []
    response["content"]["mimeType"] = "x-unknown"
    recording = imported(document)
    assert recording.exchanges[0].mime == "text/html"
    assert any(note.startswith("Documents of no known type") for note in recording.notes)


@pytest.mark.parametrize("url", ["about:blank", "file:///home/x.html"])
def test_a_first_page_without_a_usable_request_is_passed_over(url: str, imported: Import) -> None:
    document = devtools()
    blank = deepcopy(document["log"]["entries"][0])
    blank["pageref"] = "page_0"
    blank["request"]["url"] = url
    document["log"]["entries"].insert(0, blank)
    document["log"]["pages"].insert(0, {"id": "page_0", "title": "", "pageTimings": {}})
    with pytest.raises(ConfigurationError, match="give --page, one of page_1"):
        imported(document, page="page_0")
    found = imported(document)
    assert len(found.exchanges) == len(SITE)
    assert any("of another page of the file: 1 (page_0)" in note for note in found.notes)


@pytest.mark.parametrize(
    ("said", "size"),
    [({}, 0), ({"postData": {"mimeType": "text/plain", "text": "g\u00fc"}}, 3),
     ({"headers": [{"name": "Content-Length", "value": "77"}]}, 77)],
)  # fmt: skip
def test_a_post_whose_size_was_not_counted(
    said: dict[str, Any], size: int, imported: Import
) -> None:
    document = devtools()
    document["log"]["entries"][6]["request"] |= {"method": "POST", "bodySize": -1, **said}
    found = imported(document)
    assert found.exchanges[6].request_body_size == size
    assert any("body is of unknown size" in note for note in found.notes) == (not size)


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_page_whose_clock_is_another_has_its_requests(hours: int, imported: Import) -> None:
    document = devtools()
    page = document["log"]["pages"][0]
    page["startedDateTime"] = f"2024-05-06T{7 + hours:02}:08:09.500Z"
    found = imported(document)
    assert [(x.url, x.start_ms) for x in found.exchanges] == [(s.url, s.start_ms) for s in SITE]
    assert [x.after_load for x in found.exchanges] == [False] * 6 + [True]
    assert any("by another clock than their requests" in note for note in found.notes)


def test_what_chrome_once_wrote_for_its_cache_is_known(imported: Import) -> None:
    document = devtools()
    entries = document["log"]["entries"]
    again = deepcopy(entries[2])
    again["response"] |= {"_transferSize": 0, "bodySize": 0}
    entries.append(again)
    entries[5]["response"] |= {"_transferSize": 0, "bodySize": 0}
    recording = imported(document)
    assert len(recording.exchanges) == len(SITE)
    assert recording.exchanges[5].body == SITE[5].content
    notes = " ".join(recording.notes)
    assert "answered by the cache: 1" in notes and "sent as from the network: 1" in notes
