"""What we export comes back: the same bodies, sizes and parents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest

from testbed.archive.reading import Archive, Entry, read_archive
from testbed.pages.build import build_page
from wings.pages.exchange import Recording
from wings.pages.har_export import TRANSFERRED, export_har, write_archive
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.conftest import NAMES, Small
from wings.pages.tests.recordings import ROOT_URL, make_exchange, make_recording

TEXT = b"".join(b"p.c%d{width:%dpx}" % (n * 7919, n) for n in range(99))
# No importer would find this by compressing again: another window, and not the best quality.
CODED = brotli.compress(TEXT, quality=3, lgwin=10)
LATE = make_exchange(
    "https://www.example.com/late.css",
    CODED,
    headers=(("content-type", "text/css"), ("content-encoding", "br")),
    mime="text/css", decoded_size=len(TEXT), initiator="https://www.example.com/a.css?v=1&b=",
    how="css", start_ms=10.5, dur_ms=5.25, after_load=True,
)  # fmt: skip


def come_back(text: str, folder: Path) -> tuple[Recording, Archive]:
    file = folder / "exported.har"
    file.write_text(text, encoding="utf-8")
    recording = read_recording(file)
    assert isinstance(recording, Recording)
    written = write_page(folder / "again", recording, WriteOptions(keep_secrets=True))
    assert written.kind == "archive"
    return recording, read_archive(folder / "again")


def told(entry: Entry) -> tuple[object, ...]:
    """All of an entry that is kept; who carries a name is found anew, and gaps follow."""
    body = None if entry.body is None else entry.body.name
    sizes = (entry.headers_size, entry.body_size, entry.decoded_size, entry.request_body_size)
    times = (entry.start_ms, entry.dur_ms, entry.after_load)
    names = (entry.method, entry.url, entry.status, entry.protocol, entry.mime, entry.headers)
    return (*names, body, *sizes, *times, entry.parent, entry.location)


@pytest.mark.parametrize("name", NAMES)
def test_every_table_comes_back(
    name: str, built: Callable[[str], Archive], cache: Path, tmp_path: Path
) -> None:
    before = built(name)
    folder = next(entry.body for entry in before.entries if entry.body is not None).parents[1]
    _, after = come_back(export_har(folder), tmp_path)
    assert sorted(map(told, before.entries), key=repr) == sorted(map(told, after.entries), key=repr)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    recording = make_recording(LATE, pinned=True, load_ms=400.5)
    write_archive(tmp_path / "mine", recording, licence="none")
    return tmp_path / "mine"


def test_a_recording_comes_back_in_its_order(recorded: Path, tmp_path: Path) -> None:
    before = read_archive(recorded)
    recording, after = come_back(export_har(recorded), tmp_path)
    assert [told(entry) for entry in before.entries] == [told(entry) for entry in after.entries]
    assert [entry.how for entry in before.entries] == [entry.how for entry in after.entries]
    assert [entry.gap_ms for entry in before.entries] == [entry.gap_ms for entry in after.entries]
    assert recording.exchanges[-1].body == CODED
    assert (recording.pinned, recording.load_ms, recording.url) == (True, 400.5, ROOT_URL)


def test_digests_of_what_requests_sent_come_back(tmp_path: Path) -> None:
    url = "https://www.example.com/graphql"
    sent = {"method": "POST", "request_body": b'{"a": 1}', "request_body_size": 8}
    write_archive(tmp_path / "page", make_recording(make_exchange(url, b"x", **sent)), licence="")
    first = read_archive(tmp_path / "page").entries[-1].posted
    _, archive = come_back(export_har(tmp_path / "page"), tmp_path)
    assert first is not None and first.fields is not None
    assert archive.entries[-1].posted == first


def test_a_body_as_transferred_that_is_broken_is_made_again(recorded: Path, tmp_path: Path) -> None:
    document = json.loads(export_har(recorded))
    document["log"]["entries"][-1]["response"][TRANSFERRED] = "no base64!"
    recording, _ = come_back(json.dumps(document), tmp_path)
    assert brotli.decompress(recording.exchanges[-1].body) == TEXT
    assert "no base64, compressed again: 1" in " ".join(recording.notes)


def test_other_producers_do_not_speak_for_us(recorded: Path, tmp_path: Path) -> None:
    document = json.loads(export_har(recorded))
    document["log"]["creator"]["name"] = "another"
    recording, _ = come_back(json.dumps(document), tmp_path)
    late = {exchange.url: exchange for exchange in recording.exchanges}[LATE.url]
    assert (late.after_load, recording.pinned) == (False, False)
    assert late.body != CODED


def test_a_table_without_an_order_gets_one_that_a_page_can_have(
    small: Small, cache: Path, tmp_path: Path
) -> None:
    """What has no start stands last in a table, also when it led to others."""
    folder = small(
        "0,,a.example,text/html,200,4480,16000,root,,0,120\n"
        "1,2,a.example,image/png,200,2480,2000,url-in-css,,90,60\n"
        "2,0,a.example,text/css,200,2480,2000,url-in-main-html,,,\n"
    )
    page = build_page(folder, cache)
    before = read_archive(page)
    recording, after = come_back(export_har(page), tmp_path)
    parents = {entry.url: entry.parent for entry in before.entries}
    assert {entry.url: entry.parent for entry in after.entries} == parents
    assert [entry.mime for entry in after.entries] == ["text/html", "text/css", "image/png"]
    assert recording.notes == ()
