"""What a recording becomes on disk: valid HAR, bodies by hash, the same bytes each time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.head import natural_size
from testbed.archive.reading import read_archive
from testbed.base.errors import ConfigurationError, StorageError
from testbed.pages.catalogue import read_facts
from tests.client.har_model import Har
from wings.pages.exchange import PageExchange, Recording
from wings.pages.har_export import LICENCE_RECORDED, write_archive
from wings.pages.tests.recordings import PIXEL, ROOT_URL, STYLE, make_exchange, make_recording
from wings.pages.verify import verify_archive


def write(folder: Path, recording: Recording) -> Path:
    write_archive(folder, recording, licence=LICENCE_RECORDED)
    return folder


def read_log(folder: Path) -> Any:
    return json.loads((folder / "page.har").read_text())["log"]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write(tmp_path / "mine", make_recording())


def test_it_verifies_and_is_valid_har(page: Path) -> None:
    assert verify_archive(page) == []
    Har.model_validate_json((page / "page.har").read_text())


def test_the_folder_is_what_was_recorded(page: Path) -> None:
    archive = read_archive(page)
    recording = make_recording()
    assert (archive.name, archive.title, archive.root_url) == ("mine", "A page", ROOT_URL)
    for entry, exchange in zip(archive.entries, recording.exchanges, strict=True):
        assert (entry.body.read_bytes() if entry.body else b"") == exchange.body
        assert (entry.how, entry.parent) == (exchange.how, exchange.initiator)
        for name in ("url", "status", "protocol", "start_ms", "dur_ms", "decoded_size",
                     "after_load"):  # fmt: skip
            assert getattr(entry, name) == getattr(exchange, name), name
    assert [entry.depth for entry in archive.entries] == [0, 1, 2, 3]
    assert [entry.gap_ms for entry in archive.entries] == [None, -50.25, 10.0, 1.0]
    assert archive.entries[2].location == "http://img.example.com:8080/p.gif"


def test_headers_are_kept_and_replayed_without_the_servers_own(page: Path) -> None:
    entries = read_log(page)["entries"]
    assert {"name": "date", "value": "today"} in entries[0]["response"]["headers"]
    assert entries[1]["request"]["headers"] == [{"name": "accept", "value": "text/css"}]
    assert entries[1]["request"]["queryString"] == [
        {"name": "v", "value": "1"}, {"name": "b", "value": ""}
    ]  # fmt: skip
    assert [name for name, _ in read_archive(page).entries[0].headers] == ["content-type"]


def test_times_are_dates_of_the_day(page: Path) -> None:
    log = read_log(page)
    assert log["pages"][0]["pageTimings"] == {"onLoad": 142.5}
    assert log["entries"][3]["startedDateTime"] == "2026-02-03T00:00:00.141Z"
    assert log["entries"][3]["time"] == 9.0


def test_the_same_recording_gives_the_same_bytes(page: Path, tmp_path: Path) -> None:
    again = write(tmp_path / "again" / "mine", make_recording())
    files = {p.relative_to(page): p.read_bytes() for p in page.rglob("*") if p.is_file()}
    assert files == {p.relative_to(again): p.read_bytes() for p in again.rglob("*") if p.is_file()}


def test_heads_that_nginx_can_make_and_a_note_of_it(page: Path) -> None:
    heads = [entry.headers_size for entry in read_archive(page).entries]
    natural = natural_size(200, len(PIXEL), (("Content-Type", "image/gif"),))
    assert heads == [None, None, 400, natural]
    note = f"1 response head grows by {natural - 100} bytes in all"
    assert any(text.startswith(note) for text in read_facts(page / "page.toml").deviations)


def test_a_status_that_nginx_has_no_words_for(tmp_path: Path) -> None:
    odd = make_exchange("https://www.example.com/odd", status=199, headers_size=500)
    folder = write(tmp_path / "odd", make_recording(odd))
    assert read_archive(folder).entries[4].headers_size is None
    assert any("(199)" in text for text in read_facts(folder / "page.toml").deviations)
    assert verify_archive(folder) == [
        "https://www.example.com/odd: a response with status 199 cannot be replayed"
    ]


def test_what_led_to_a_request_is_never_unknown(tmp_path: Path) -> None:
    urls = [f"https://www.example.com/{n}" for n in range(3)]
    more = (
        make_exchange(urls[0], initiator=None, how="other"),
        make_exchange(urls[1], initiator=urls[2], how="script"),
        make_exchange(urls[2], initiator=urls[1], how="script"),
    )
    folder = write(tmp_path / "odd", make_recording(*more))
    assert [entry.parent for entry in read_archive(folder).entries[4:]] == [
        ROOT_URL, ROOT_URL, urls[1]
    ]  # fmt: skip
    deviations = read_facts(folder / "page.toml").deviations
    assert "What led to 1 request is not known; taken to be the document." in deviations
    assert any("was not asked for before it" in text for text in deviations)
    assert verify_archive(folder) == []


def test_the_document_is_behind_the_roots_redirects(tmp_path: Path) -> None:
    page = make_recording()
    moved = make_exchange("http://example.com/", status=301, headers=(("Location", ROOT_URL),),
                          how="root", initiator=None)  # fmt: skip
    root = replace(page.exchanges[0], how="redirect", initiator=moved.url)
    stray = make_exchange("https://www.example.com/x", initiator=None)
    recording = replace(page, url=moved.url, exchanges=(moved, root, *page.exchanges[1:], stray))
    assert read_archive(write(tmp_path / "moved", recording)).entries[-1].parent == ROOT_URL


def test_a_repeated_request_belongs_to_the_latest_of_its_initiator(tmp_path: Path) -> None:
    bounce = make_exchange(
        ROOT_URL, b"again", initiator=ROOT_URL, how="script", mime="text/html", start_ms=200.0
    )
    folder = write(tmp_path / "again", make_recording(bounce))
    assert [entry.url for entry in read_archive(folder).entries].count(ROOT_URL) == 2
    assert verify_archive(folder) == []


def test_bodies_that_are_equal_are_kept_once(tmp_path: Path) -> None:
    twin = make_exchange("https://www.example.com/p.gif", PIXEL)
    folder = write(tmp_path / "twin", make_recording(twin))
    assert len(list((folder / "bodies").iterdir())) == 3
    assert STYLE in [path.read_bytes() for path in (folder / "bodies").iterdir()]


def test_facts_and_notes(tmp_path: Path) -> None:
    recording = make_recording(title='A "page"\n', notes=("One body was cut.",), pinned=True)
    folder = write(tmp_path / "noted", recording)
    facts = read_facts(folder / "page.toml")
    assert (facts.title, facts.pinned, facts.deviations[0]) == (
        'A "page"\n', True, "One body was cut."
    )  # fmt: skip
    assert "must not be published" in facts.licence
    assert read_log(folder)["pages"][0]["_notes"] == list(facts.deviations)
    assert read_archive(folder).pinned


@pytest.mark.parametrize(
    ("exchange", "message"),
    [
        (make_exchange("https://www.example.com/x", None), "the body is missing"),
        (make_exchange("https://www.example.com/x", b"a", body_size=2), "a body of 1 bytes"),
        (make_exchange("file:///etc/passwd"), "only http and https"),
        (make_exchange("https://../x"), "no host name"),
        (make_exchange("https://www.example.com/x", how="root"), "only it, is the root"),
        (make_exchange("https://www.example.com/x", start_ms=float("nan")), "is no time"),
        (make_exchange("https://www.example.com/x", dur_ms=1e300), "is no time"),
    ],
)
def test_a_recording_that_is_not_whole(
    tmp_path: Path, exchange: PageExchange, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "mine", make_recording(exchange))
    assert list(tmp_path.iterdir()) == []


def test_the_first_exchange_is_the_page(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the page's own"):
        write(tmp_path / "mine", make_recording(url="https://elsewhere.example/"))


def test_a_page_that_is_there_stays(page: Path) -> None:
    with pytest.raises(ConfigurationError, match="--replace"):
        write(page, make_recording(title="Another"))
    assert read_archive(page).title == "A page"
    write_archive(page, make_recording(title="Another"), licence="none", replace=True)
    assert read_archive(page).title == "Another"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write the page"):
        write(tmp_path / "file" / "mine", make_recording())
