"""An exported page is one HAR that other tools read and that holds every byte."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import Archive, read_archive
from testbed.base.errors import ConfigurationError, StorageError
from testbed.pages.build import build_page
from tests.client.har_model import Har
from wings.pages.har_export import TRANSFERRED, export_har, write_archive, write_export
from wings.pages.importing.har import read_har
from wings.pages.importing.screening import screen
from wings.pages.tests.conftest import PAGES
from wings.pages.tests.recordings import PIXEL, STYLE, make_exchange, make_recording


@pytest.fixture
def page(tmp_path: Path) -> Path:
    latin = make_exchange("https://www.example.com/l", "é".encode("latin-1"), mime="text/plain")
    plain = make_exchange("https://www.example.com/b", b"only ASCII", mime="image/png")
    latin, plain = (replace(x, start_ms=200.0) for x in (latin, plain))
    write_archive(tmp_path / "mine", make_recording(latin, plain), licence="Mine.")
    return tmp_path / "mine"


def responses(text: str) -> list[dict[str, Any]]:
    return [entry["response"] for entry in json.loads(text)["log"]["entries"]]


def transferred(response: dict[str, Any]) -> bytes:
    """The body as transferred, as an importer finds it."""
    content = response["content"]
    if TRANSFERRED in response:
        return base64.b64decode(response[TRANSFERRED])
    if content.get("encoding") == "base64":
        return base64.b64decode(content["text"])
    return bytes(content.get("text", ""), "utf-8")


def test_it_is_valid_har(page: Path) -> None:
    har = Har.model_validate_json(export_har(page))
    assert har.log.comment == "made up\nMine."


def test_contents_are_decoded_and_in_base64_unless_text(page: Path) -> None:
    document, style, old, pixel, latin, plain = (r["content"] for r in responses(export_har(page)))
    assert document["text"].startswith("<!doctype html>")
    assert style == {
        "size": 19, "compression": 19 - len(STYLE), "mimeType": "text/css",
        "text": "body { color: red }",
    }  # fmt: skip
    assert "text" not in old
    assert (pixel["encoding"], base64.b64decode(pixel["text"])) == ("base64", PIXEL)
    assert (latin["encoding"], latin["text"]) == ("base64", "6Q==")
    assert plain["encoding"] == "base64"


def check_bodies(archive: Archive, text: str) -> None:
    for entry, response in zip(archive.entries, responses(text), strict=True):
        body = transferred(response)
        assert len(body) == entry.body_size
        if entry.body is not None:
            assert hashlib.sha256(body).hexdigest() == entry.body.name


def test_every_transferred_byte_is_there(page: Path) -> None:
    check_bodies(read_archive(page), export_har(page))


def test_a_failure_comes_back_as_it_was(tmp_path: Path) -> None:
    gone = make_exchange("https://gone.example.com/x", status=0, failure="net::ERR_TIMED_OUT",
                         start_ms=60.0, dur_ms=70.0)  # fmt: skip
    blocked = make_exchange("https://ads.example.com/x", status=0, failure="csp")
    recording = make_recording(gone, blocked)
    write_archive(tmp_path / "mine", recording, licence="Mine.")
    archive = read_archive(tmp_path / "mine")
    assert len(archive.entries) == len(recording.exchanges) - 2
    assert [(e.failure, e.dur_ms) for e in archive.failures] == [
        ("net::ERR_TIMED_OUT", 70.0),
        ("csp", None),
    ]
    file = tmp_path / "mine.har"
    file.write_text(export_har(tmp_path / "mine"))
    again = screen(read_har(file))
    assert {x.url: x.failure for x in again.exchanges} == {
        x.url: x.failure for x in recording.exchanges
    }


def test_a_page_from_a_table(cache: Path, built: Callable[[str], Archive]) -> None:
    text = export_har(build_page(PAGES / "wikipedia", cache))
    Har.model_validate_json(text)
    check_bodies(built("wikipedia"), text)


def test_our_own_fields_are_kept(page: Path) -> None:
    log = json.loads(export_har(page))["log"]
    original = json.loads((page / "page.har").read_text())["log"]
    assert log["pages"] == original["pages"]
    for entry, before in zip(log["entries"], original["entries"], strict=True):
        assert {k: v for k, v in entry.items() if k != "response"} == {
            k: v for k, v in before.items() if k != "response"
        }


def test_what_has_no_start_keeps_its_place(tmp_path: Path) -> None:
    late = make_exchange("https://www.example.com/l", start_ms=None)
    write_archive(tmp_path / "mine", make_recording(late), licence="none")
    entries = json.loads(export_har(tmp_path / "mine"))["log"]["entries"]
    starts = [entry["startedDateTime"] for entry in entries]
    assert starts == sorted(starts)
    assert starts[4] == starts[3]


def test_bodies_that_cannot_be_read_are_told_all_at_once(page: Path) -> None:
    for index, data in ((1, b"no gzip"), (3, None)):
        body = read_archive(page).entries[index].body
        assert body is not None
        if data is None:
            body.unlink()
        else:
            body.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        export_har(page)
    assert len(caught.value.problems) == 2


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.har"
    write_export("one", path, replace=False)
    with pytest.raises(ConfigurationError, match="--replace"):
        write_export("two", path, replace=False)
    assert path.read_text() == "one"
    write_export("two", path, replace=True)
    assert path.read_text() == "two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="choose another place"):
        write_export("one", tmp_path / "gone" / "a.har", replace=False)
    with pytest.raises(ConfigurationError, match="choose another name"):
        write_export("one", tmp_path / ("a" * 300), replace=False)  # not even looked up
