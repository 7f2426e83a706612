"""HARs of six producers: the same load comes out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from struct import unpack
from typing import Any

import pytest

from testbed.archive.reading import read_archive
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from testbed.pages.catalogue import read_facts
from wings.pages.coding import decode
from wings.pages.exchange import PageExchange, Recording
from wings.pages.har_export import export_har
from wings.pages.importing.registry import read_recording
from wings.pages.tests.importing.conftest import Import
from wings.pages.tests.importing.site import (
    LOAD_MS,
    ROOT,
    SITE,
    Sent,
    browsertime,
    devtools,
    firefox,
    mitmproxy,
    playwright,
    webpagetest,
)

PRODUCERS = (devtools, firefox, browsertime, webpagetest, playwright)
Producer = Callable[..., dict[str, Any]]


def by_url(recording: Recording) -> dict[str, PageExchange]:
    return {exchange.url: exchange for exchange in recording.exchanges}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_the_same_load_comes_out_of_every_producers_har(
    producer: Producer, imported: Import
) -> None:
    recording = imported(producer(bodies=True))
    assert [exchange.url for exchange in recording.exchanges] == [sent.url for sent in SITE]
    for exchange, sent in zip(recording.exchanges, SITE, strict=True):
        assert exchange.status == sent.status
        assert exchange.protocol == sent.protocol
        assert exchange.mime == sent.mime.partition(";")[0]
        coding = dict(exchange.headers).get("content-encoding", "")
        assert coding == sent.coding
        assert decode(exchange.body or b"", coding, 1 << 20) == sent.content
        assert exchange.decoded_size == len(sent.content)
    assert (recording.title, recording.load_ms) == ("A made-up site", LOAD_MS)
    assert recording.recorded.isoformat() == "2024-05-06"
    assert [exchange.after_load for exchange in recording.exchanges] == [False] * 6 + [True]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_what_led_to_what_is_kept(producer: Producer, imported: Import) -> None:
    found = by_url(imported(producer(bodies=True)))
    assert found["http://www.site.example/"].how == "root"
    assert (found[ROOT].how, found[ROOT].initiator) == ("redirect", "http://www.site.example/")
    assert found[ROOT + "style.css"].initiator == ROOT
    assert found[ROOT + "style.css"].how == "parser"
    assert found[ROOT + "new.png"].how == "redirect"
    data = found[ROOT + "data.json?q=1&r=%20"]
    assert (data.how, data.initiator) == ("script", "https://cdn.site.example/app.js")


@pytest.mark.parametrize("producer", (webpagetest, firefox, playwright, mitmproxy))
def test_a_producer_that_counts_bodies_gets_them_in_the_counted_size(
    producer: Producer, imported: Import
) -> None:
    found = by_url(imported(producer(bodies=True)))
    for sent in SITE:
        assert found[sent.url].body_size == len(sent.wire)


def test_mitmproxy_counts_no_head_so_it_is_counted_here(imported: Import) -> None:
    recording = imported(mitmproxy())
    assert [exchange.url for exchange in recording.exchanges] == [sent.url for sent in SITE]
    heads = {exchange.url: exchange.headers_size for exchange in recording.exchanges}
    app = SITE[3]
    assert heads[app.url] == len(app.head)
    assert heads[ROOT] is None
    assert recording.exchanges[2].initiator == ROOT


def test_a_content_length_says_the_size_where_http_2_has_none(imported: Import) -> None:
    document = devtools()
    for entry, sent in zip(document["log"]["entries"], SITE, strict=True):
        length = {"name": "Content-Length", "value": str(len(sent.wire))}
        entry["response"]["headers"].append(length)
    found = by_url(imported(document))
    assert [found[sent.url].body_size for sent in SITE] == [len(sent.wire) for sent in SITE]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_without_any_body_only_numbers_are_left(producer: Producer, imported: Import) -> None:
    recording = imported(producer(bodies=False))
    assert all(exchange.body is None for exchange in recording.exchanges)
    sizes = {exchange.url: exchange.body_size for exchange in recording.exchanges}
    for sent in SITE:
        assert abs(sizes[sent.url] - len(sent.wire)) <= 60
    assert any("only numbers are kept" in note for note in recording.notes)


def test_an_absent_body_among_others_is_made_in_its_recorded_size(imported: Import) -> None:
    document = webpagetest()
    for entry in document["log"]["entries"][2:6]:
        entry["response"]["content"].pop("text", None)
    recording = imported(document)
    for sent in SITE[2:6]:
        exchange = by_url(recording)[sent.url]
        assert exchange.body_size == len(sent.wire)
        if sent.coding:
            assert exchange.decoded_size == len(sent.content)
    note = next(note for note in recording.notes if note.startswith("Bodies that were not"))
    assert "3 (" in note and "style.css" in note
    made_up = [sent.url for sent in SITE[2:6] if sent.wire]
    assert [x.url for x in recording.exchanges if x.made_up] == made_up


def test_an_export_says_what_is_made_up_and_so_does_its_import(
    imported: Import, tmp_path: Path
) -> None:
    document = webpagetest()
    del document["log"]["entries"][2]["response"]["content"]["text"]
    imported(document)
    size = f"{len(SITE[2].wire)} B"
    facts = read_facts(tmp_path / "page" / "page.toml")
    assert f"Made up in their recorded sizes: 1 of 5 bodies, {size} of " in facts.bodies
    again = imported(export_har(tmp_path / "page").encode())
    assert [x.url for x in again.exchanges if x.made_up] == [SITE[2].url]
    entries = read_archive(tmp_path / "page").entries
    assert [entry.url for entry in entries if entry.made_up] == [SITE[2].url]


@pytest.mark.parametrize(("kept", "made_up"), [(16, True), (0.5, True), (0.95, False)])
def test_a_body_that_was_cut_short_counts_as_not_recorded(
    kept: float, made_up: bool, imported: Import
) -> None:
    document = webpagetest()
    content = document["log"]["entries"][3]["response"]["content"]
    content["text"] = content["text"][: int(kept if kept > 1 else kept * content["size"])]
    recording = imported(document)
    exchange = by_url(recording)[SITE[3].url]
    assert exchange.made_up is made_up
    assert any(note.startswith("Bodies cut short") for note in recording.notes) is made_up
    assert not made_up or exchange.body_size == len(SITE[3].wire)


def test_a_table_of_an_import_says_that_it_is_made_up(imported: Import, tmp_path: Path) -> None:
    imported(webpagetest(bodies=False))
    built = build_page(tmp_path / "page", tmp_path / "cache")
    entries = read_archive(built).entries
    assert [entry.made_up for entry in entries] == [entry.body is not None for entry in entries]
    assert any(entry.made_up for entry in entries)


@pytest.mark.parametrize(("url", "mime"), (("f.woff2", "font/woff2"),
                                           ("f", "application/font-woff"),
                                           ("f.ttf?v=1", "binary/octet-stream")))  # fmt: skip
@pytest.mark.parametrize("size", (564, 565, 70_001))
def test_an_absent_font_is_one_lest_the_browser_ask_for_another(
    url: str, mime: str, size: int, imported: Import
) -> None:
    sent = Sent(ROOT + url, mime, bytes(size), initiator=ROOT, protocol="http/1.1")
    document = browsertime((*SITE, sent), bodies=True)
    del document["log"]["entries"][-1]["response"]["content"]["text"]
    font = by_url(imported(document))[ROOT + url].body or b""
    assert (font[:4], len(font)) == (b"wOFF", size)
    length, number, total = unpack(">IHxxI", font[8:20])
    assert length == size
    tables = [unpack(">4s4I", font[44 + 20 * n :][:20]) for n in range(number)]
    assert total == 12 + 16 * number + sum((whole + 3) // 4 * 4 for *_, whole, _ in tables)
    start, private = unpack(">II", font[36:44])
    ends = [44 + 20 * number, *((at + packed + 3) // 4 * 4 for _, at, packed, *_ in tables)]
    assert [at for _, at, *_ in tables] == ends[:-1]
    assert (start or size) == ends[-1] == size - private


def test_a_gzipped_har_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "load.txt"
    path.write_bytes(gzip.compress(json.dumps(devtools()).encode()))
    assert len(getattr(read_recording(path), "exchanges", ())) == len(SITE)


def test_one_page_of_several_is_taken(imported: Import) -> None:
    document = browsertime(bodies=True)
    again = json.loads(json.dumps(document["log"]["entries"][1:3]).replace("page_1", "page_2"))
    document["log"]["entries"] += again
    document["log"]["pages"].append({"id": "page_2", "title": "Second", "pageTimings": {}})
    first, second = imported(document), imported(document, page="page_2")
    assert (len(first.exchanges), len(second.exchanges)) == (len(SITE), 2)
    assert second.title == "Second"
    assert any(note.startswith("Requests left out, of another page") for note in first.notes)
    with pytest.raises(ConfigurationError, match="no page 'page_3'; the pages are page_1, page_2"):
        imported(document, page="page_3")


def test_the_caller_may_say_which_url_begins_the_page(imported: Import) -> None:
    assert imported(devtools(), url=ROOT).url == ROOT
    with pytest.raises(ConfigurationError, match="no request for it; the first ones are"):
        imported(devtools(), url="http://other.example/")


def test_what_the_cache_answered_is_sent_once_and_as_200(imported: Import) -> None:
    document = devtools()
    entries = document["log"]["entries"]
    entries[2]["response"] |= {"status": 304, "bodySize": 0, "_transferSize": 0}
    entries.append(json.loads(json.dumps(entries[5])) | {"_fromCache": "memory"})
    recording = imported(document)
    assert len(recording.exchanges) == len(SITE)
    assert by_url(recording)[ROOT + "style.css"].status == 200
    notes = " ".join(recording.notes)
    assert "answered by the cache: 1" in notes and "sent as from the network: 1" in notes


def test_a_revalidation_behind_an_answer_stays_one(imported: Import) -> None:
    document = devtools()
    again = json.loads(json.dumps(document["log"]["entries"][2]))
    again["response"] |= {"status": 304, "bodySize": 0, "_transferSize": 0}
    document["log"]["entries"].append(again)
    recording = imported(document)
    style = [e for e in recording.exchanges if e.url == ROOT + "style.css"]
    assert [(e.status, bool(e.body)) for e in style] == [(200, True), (304, False)]
    assert "Revalidations, answered 304 Not Modified again: 1" in " ".join(recording.notes)


@pytest.mark.parametrize("name", ["_fetchedViaServiceWorker", "fromServiceWorker"])
def test_what_a_service_worker_answered_went_out_once(name: str, imported: Import) -> None:
    document = devtools()
    entries = document["log"]["entries"]
    entries.append(json.loads(json.dumps(entries[5])))
    entries[4]["response"][name] = entries[5]["response"][name] = True
    recording = imported(document)
    assert len(recording.exchanges) == len(SITE)
    notes = " ".join(recording.notes)
    assert "answered by a service worker: 1" in notes and "sent as from the network: 1" in notes


@pytest.mark.parametrize("where", ("entry", "response"))
def test_a_repeat_from_the_disk_cache_is_no_request(where: str, imported: Import) -> None:
    document = browsertime(bodies=True)
    again = json.loads(json.dumps(document["log"]["entries"][2]))
    (again if where == "entry" else again["response"])[
        "_fromDiskCache" if where == "entry" else "fromDiskCache"
    ] = True
    document["log"]["entries"].append(again)
    recording = imported(document)
    assert len(recording.exchanges) == len(SITE)
    assert "answered by the cache: 1" in " ".join(recording.notes)


def test_text_is_written_in_the_charset_that_it_had(imported: Import) -> None:
    text = "<!doctype html>Grüße"
    latin = Sent(ROOT, "text/html; charset=ISO-8859-1", text.encode("latin-1"))
    document = webpagetest((latin,), bodies=False)
    document["log"]["entries"][0]["response"]["content"]["text"] = text
    assert imported(document).exchanges[0].body == text.encode("latin-1")
