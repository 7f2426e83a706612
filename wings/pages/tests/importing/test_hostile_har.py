"""HARs that are wrong or mean harm: a clear error, or a counted repair."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages import limits
from wings.pages.importing import bodies, untrusted
from wings.pages.importing.registry import read_recording
from wings.pages.tests.importing.conftest import Import
from wings.pages.tests.importing.site import ROOT, SITE, Sent, devtools, webpagetest

Change = Callable[[dict[str, Any]], object]


def changed(change: Change, index: int = 2) -> dict[str, Any]:
    """A sound HAR, one entry of it changed."""
    document = webpagetest()
    change(document["log"]["entries"][index])
    return document


def test_a_truncated_file_is_told_with_the_byte(imported: Import) -> None:
    data = json.dumps(devtools(), ensure_ascii=False).encode()
    with pytest.raises(ConfigurationError, match=r"no JSON at byte \d+ of 900: the file ends"):
        imported(data[:900])
    cut = gzip.compress(data)[:-20]
    with pytest.raises(ConfigurationError, match="gzip data is truncated; fetch it again"):
        imported(cut)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"log": "\xff"}', "not UTF-8 at byte 9"),
        (b'{"log": ' + b"[" * 100_000, "nested too deeply|ends too early"),
        (b'{"log": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"{}", "no object `log`"),
        (b'{"log": {}}', "no requests"),
        (b'{"log": {"entries": 7}}', "no requests"),
        (b'{"log": {"entries": [7, null, "x", []]}}', "no request is left"),
        (b"", "not recognised"),
        (b"GIF89a", "not recognised"),
    ],
)
def test_what_is_no_har_is_told(data: bytes, problem: str, imported: Import) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        imported(data)


def test_a_byte_order_mark_is_skipped(imported: Import) -> None:
    data = b"\xef\xbb\xbf" + json.dumps(devtools()).encode()
    assert len(imported(data).exchanges) == len(SITE)


def test_too_large_files_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "HAR_BYTES", 1000)
    path = tmp_path / "x.har"
    path.write_bytes(b"{" + b" " * 2000)
    with pytest.raises(ConfigurationError, match="export fewer pages, or without bodies"):
        read_recording(path)
    path.write_bytes(gzip.compress(b"{" + b" " * 200_000))
    with pytest.raises(ConfigurationError, match="export fewer pages, or without bodies"):
        read_recording(path)


def test_millions_of_empty_values_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "JSON_VALUES", 1000)
    path = tmp_path / "x.har"
    path.write_text('{"log": {"entries": [' + "[]," * 1001 + "[]]}}")
    with pytest.raises(ConfigurationError, match="more than 1000 values"):
        read_recording(path)
    text = "[{," * 1001
    path.write_text(json.dumps({"log": {"entries": [], "comment": text}}))
    with pytest.raises(ConfigurationError, match="no requests"):
        read_recording(path)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "file: URLs"),
        ("data:text/html,x", "data: URLs"),
        ("chrome-extension://abc/x.js", "chrome-extension: URLs"),
        ("gopher://x.example/", "an unknown kind of URL"),
        ("/etc/passwd", "no absolute URL"),
        ("https://x.example;}\n server {/", "host names that are none"),
        ("https://x.example\"; return 200 'x", "host names that are none"),
        ("https://" + "a" * 300 + ".example/", "host names that are none"),
        ("https://x..example/", "host names that are none"),
        ("https://127.0.0.1/", "addresses instead of host names"),
        ("https://0x7f.1/", "addresses instead of host names"),
        ("https://[::1]/", "addresses instead of host names: record it under a name"),
        ("https://[::1]:8443/", "addresses instead of host names"),
        ("https://localhost/", "localhost"),
        ("https://x.example:99999/", "no port"),
        ("https://x.example:-1/", "no port"),
        ("https://x.example:80/", "https on port 80"),
        ("https://x.example/" + "a" * 5000, "URLs that nginx cannot be asked for"),
        ("https://x.example/%00", "URLs that nginx cannot be asked for"),
        ("http://prime/", "a host name that the lab needs"),
    ],
)
def test_a_url_that_no_lab_can_serve_is_left_out_and_counted(
    url: str, reason: str, imported: Import
) -> None:
    document = changed(lambda entry: entry.update(_full_url=url))
    recording = imported(document)
    assert len(recording.exchanges) == len(SITE) - 1
    notes = [note for note in recording.notes if note.startswith("Requests left out, ")]
    assert len(notes) == 1
    assert any(part in notes[0] for part in reason.split("|"))
    assert "\n" not in notes[0]


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("HTTPS://X.Example:443/a b#top", "https://x.example/a%20b"),
        ("https://user:word@x.example", "https://x.example/"),
        ("https://bücher.example/ü?q=ü", "https://xn--bcher-kva.example/%C3%BC?q=%C3%BC"),
        ("https://x.example./../../etc/./passwd", "https://x.example/etc/passwd"),
        ("https://x.example\\a\\..\\b", "https://x.example/b"),
        ("https://x.example/\x00\r\n\x7f$x\"'{};", "https://x.example/%00%7F$x%22'{};"),
    ],
)
def test_a_url_is_brought_to_the_form_in_which_a_browser_asks(
    url: str, clean: str, imported: Import
) -> None:
    recording = imported(changed(lambda entry: entry.update(_full_url=url)))
    urls = [exchange.url for exchange in recording.exchanges]
    assert clean in urls or ("%00" in clean and len(urls) == len(SITE) - 1)


def test_headers_cannot_carry_others_with_them(imported: Import) -> None:
    bad = [
        {"name": "X-Split", "value": "a\r\nSet-Cookie: b"}, {"name": "X-Nul", "value": "a\x00b"},
        {"name": "X y", "value": "z"}, {"name": ":status", "value": "200"},
        {"name": "X-Wide", "value": "☃"}, {"name": 5, "value": []},
        {"name": "X-Dollar", "value": '$host "quoted" \\'},
    ]  # fmt: skip
    document = changed(lambda entry: entry["response"]["headers"].extend(bad))
    recording = imported(document)
    headers = recording.exchanges[2].headers
    assert ("X-Split", "a") in headers and ("X-Split", "Set-Cookie: b") in headers
    assert ("X-Nul", "ab") in headers
    assert ("X-Dollar", '$host "quoted" \\') in headers
    assert not {"X y", ":status", "X-Wide", ""} & {name for name, _ in headers}
    assert all(letter not in value for _, value in headers for letter in "\r\n\0")


def test_sizes_that_cannot_be_are_not_believed(imported: Import) -> None:
    def lie(entry: dict[str, Any]) -> None:
        entry["_objectSize"] = "2000000000"
        entry["response"]["headersSize"] = 10**12
        entry["response"]["content"]["size"] = 10**18
        entry["request"]["bodySize"] = -7

    recording = imported(changed(lie))
    assert recording.exchanges[2].decoded_size == len(SITE[2].content)
    assert recording.exchanges[2].headers_size is None
    said = [note for note in recording.notes if note.startswith("Stated sizes of ")]
    assert len(said) == 2
    wire = len(SITE[2].content)
    assert any(f"far above what was recorded, taken as not recorded: 1 (2000000000 stated, {wire} "
               "recorded, https://" in note for note in said)  # fmt: skip


def test_an_absent_body_of_two_gigabytes_is_left_out(imported: Import) -> None:
    def grow(entry: dict[str, Any]) -> None:
        entry["_objectSize"] = 2_000_000_000
        del entry["response"]["content"]["text"]

    recording = imported(changed(grow))
    assert len(recording.exchanges) == len(SITE) - 1
    assert any("bodies of more than 64 MiB: 1" in note for note in recording.notes)


def test_bodies_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODIES_BYTES", 100)
    budget = bodies.new_budget()
    budget.take(60)
    with pytest.raises(ConfigurationError, match="export without bodies"):
        budget.take(41)


def test_invalid_base64_counts_as_not_recorded(imported: Import) -> None:
    def spoil(entry: dict[str, Any]) -> None:
        entry["response"]["content"] |= {"text": "%%%", "encoding": "base64"}

    recording = imported(changed(spoil, 5))
    assert recording.exchanges[5].body_size == len(SITE[5].wire)
    assert any(note.startswith("Bodies that are no base64") for note in recording.notes)


def test_an_unknown_coding_is_left_out(imported: Import) -> None:
    def name(entry: dict[str, Any]) -> None:
        entry["response"]["headers"] = [{"name": "Content-Encoding", "value": "rot13"}]

    recording = imported(changed(name))
    assert recording.exchanges[2].body == SITE[2].content
    assert any(note.startswith("Content-Encoding left out") for note in recording.notes)


def test_redirects_in_a_circle_end(imported: Import) -> None:
    def turn(entry: dict[str, Any]) -> None:
        entry["response"] |= {"status": 302, "redirectURL": "/old.png"}
        entry["response"]["headers"] = [{"name": "Location", "value": "/old.png"}]

    recording = imported(changed(turn, 5))
    statuses = {exchange.url: exchange.status for exchange in recording.exchanges}
    assert sorted((statuses[ROOT + "old.png"], statuses[ROOT + "new.png"])) == [200, 302]
    assert any(note.startswith("Redirects in a circle") for note in recording.notes)


def test_the_second_round_of_a_circle_is_left_out(imported: Import) -> None:
    document = webpagetest()
    entries = document["log"]["entries"]
    entries[5]["response"] |= {"status": 302, "redirectURL": "/old.png"}
    entries[5]["response"]["headers"] = [{"name": "Location", "value": "/old.png"}]
    entries[6:6] = [copy.deepcopy(entry) for entry in entries[4:6]]
    recording = imported(document)
    assert len(recording.exchanges) == len(entries) - 2


def test_a_page_that_redirects_to_itself_has_the_document_behind_it(imported: Import) -> None:
    document = webpagetest(bodies=False)
    entries = document["log"]["entries"]
    again = copy.deepcopy(entries[1])
    again["response"] |= {"status": 302, "redirectURL": ROOT}
    again["response"]["headers"] = [{"name": "Location", "value": ROOT}]
    again["response"]["content"] = {"size": 0, "mimeType": "text/plain"}
    entries.insert(1, again)
    recording = imported(document)
    assert [exchange.status for exchange in recording.exchanges[:3]] == [301, 302, 200]


def test_a_redirect_to_nowhere_is_sent_as_200(imported: Import) -> None:
    document = webpagetest(SITE[:5])
    recording = imported(document)
    assert recording.exchanges[4].status == 200
    assert "location" not in {name.lower() for name, _ in recording.exchanges[4].headers}


def test_requests_without_a_response_are_left_out(imported: Import) -> None:
    recording = imported(changed(lambda entry: entry["response"].update(status=0)))
    assert any("without a response: 1 (GET 0 https" in note for note in recording.notes)


def test_too_many_hosts_and_requests_are_told_together(
    imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tuple(Sent(f"https://h{n}.example/", "text/html", b"x" * 99) for n in range(251))
    with pytest.raises(ConfigurationError, match="251 hosts, the lab has addresses for 250"):
        imported(webpagetest(many))
    monkeypatch.setattr("wings.pages.importing.har.ENTRIES", 5)
    with pytest.raises(ConfigurationError, match="7 requests, at most 5"):
        imported(devtools())
    assert limits.HOSTS == 250


def test_nan_and_wrong_types_count_as_not_recorded(imported: Import) -> None:
    data = json.dumps(changed(lambda entry: entry.update(time=float("nan"), _initiator=[4])))
    recording = imported(data.encode())
    assert recording.exchanges[2].dur_ms is None
    notes = " ".join(recording.notes)
    assert "(NaN)" in notes and "log.entries[2]._initiator" in notes
