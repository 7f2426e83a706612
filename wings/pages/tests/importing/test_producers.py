"""HARs in the manner of thirteen further tools: the same page comes out, and it is whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from wings.pages.coding import decode
from wings.pages.exchange import Recording
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.importing import producers
from wings.pages.tests.importing.producers import FURTHER, KNOWN, Producer
from wings.pages.tests.importing.site import ROOT, SITE, playwright
from wings.pages.verify import verify_archive

BODILESS = (producers.phantomjs,)


def imported(data: bytes, folder: Path) -> Recording:
    """The recording of ``data``; the page that is made of it, without secrets, is whole."""
    folder.mkdir(exist_ok=True)
    path = folder / "load.har"
    path.write_bytes(data)
    found = read_recording(path)
    assert isinstance(found, Recording)
    write_page(folder / "page", found, WriteOptions(replace=True))
    assert verify_archive(build_page(folder / "page", folder / "cache")) == []
    return found


@pytest.mark.parametrize("bodies", [True, False])
@pytest.mark.parametrize("producer", FURTHER)
def test_the_same_requests_come_out(producer: Producer, bodies: bool, tmp_path: Path) -> None:
    found = imported(json.dumps(producer(bodies=bodies)).encode(), tmp_path)
    expected = [sent for sent in SITE if producer is not producers.insomnia or sent.status == 200]
    answered = [exchange for exchange in found.exchanges if exchange.status]
    by_url = {exchange.url: exchange for exchange in answered if exchange.method == "GET"}
    assert list(by_url) == [sent.url for sent in expected]
    extra = [exchange for exchange in answered if exchange.method != "GET"]
    assert len(extra) == (producer is producers.chrome_today)
    assert found.recorded.isoformat() == "2024-05-06" or producer is producers.burp
    for sent in expected:
        exchange = by_url[sent.url]
        assert exchange.status == sent.status
        if bodies and producer not in BODILESS and sent.is_text:
            coding = dict(exchange.headers).get("content-encoding", "")
            assert decode(exchange.body or b"", coding, 1 << 20) == sent.content


@pytest.mark.parametrize("producer", [producers.charles, producers.zap, producers.burp])
def test_what_counted_the_body_gets_it_in_its_size(producer: Producer, tmp_path: Path) -> None:
    found = imported(json.dumps(producer()).encode(), tmp_path)
    sizes = {exchange.url: exchange.body_size for exchange in found.exchanges}
    assert sizes == {sent.url: len(sent.wire) for sent in SITE}


@pytest.mark.parametrize("producer", (*KNOWN, *FURTHER))
@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-16-be", "gzip"])
def test_any_file_a_tool_may_make_of_it(producer: Producer, coding: str, tmp_path: Path) -> None:
    text = json.dumps(producer(), ensure_ascii=False)
    mark = b"\xfe\xff" if coding == "utf-16-be" else b""
    data = gzip.compress(text.encode()) if coding == "gzip" else mark + text.encode(coding)
    found = imported(data, tmp_path)
    assert ROOT in [exchange.url for exchange in found.exchanges]


@pytest.mark.parametrize("joint", ["\n", "", "\x00", ","])
def test_two_hars_in_one_file_are_told(joint: str, tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_text(joint.join([json.dumps(producers.charles())] * 2))
    with pytest.raises(ConfigurationError, match="the HAR has ended, but the file goes on"):
        read_recording(path)


def zipped(folder: Path, members: dict[str, bytes]) -> bytes:
    path = folder / "made.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path.read_bytes()


def attached() -> tuple[bytes, dict[str, bytes]]:
    """Playwright's HAR of the site with its bodies in files, named by hash."""
    document, files = playwright(), {}
    for entry, sent in zip(document["log"]["entries"], SITE, strict=True):
        content = entry["response"]["content"]
        if content.pop("text", None) is not None:
            content.pop("encoding", None)
            content["_file"] = hashlib.sha1(sent.content).hexdigest() + ".dat"  # noqa: S324
            files[content["_file"]] = sent.content
    return json.dumps(document).encode(), files


def test_bodies_that_playwright_attached_are_read_from_the_zip(tmp_path: Path) -> None:
    har, files = attached()
    found = imported(zipped(tmp_path, files | {"har.har": har}), tmp_path)
    for exchange, sent in zip(found.exchanges, SITE, strict=True):
        coding = dict(exchange.headers).get("content-encoding", "")
        assert decode(exchange.body or b"", coding, 1 << 20) == sent.content


def test_a_name_in_a_har_is_no_path(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of this machine")
    har, files = attached()
    document = json.loads(har)
    names = (str(secret), "../secret.txt", "secret.txt")
    for entry, name in zip(document["log"]["entries"], names, strict=False):
        entry["response"]["content"]["_file"] = name
    har = json.dumps(document).encode()
    for data in (har, zipped(tmp_path, files | {"x.har": har})):
        found = imported(data, tmp_path / "in")
        assert not any(b"secret" in (exchange.body or b"") for exchange in found.exchanges)
        assert any("not with the HAR" in note for note in found.notes)


def test_a_zip_that_is_none_or_too_much_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    har, files = attached()
    path = tmp_path / "x.zip"
    path.write_bytes(zipped(tmp_path, {"a.har": har, "b.har": har}))
    with pytest.raises(ConfigurationError, match="2 HARs in one zip"):
        read_recording(path)
    whole = zipped(tmp_path, files | {"a.har": har})
    at = whole.index(b"a.har") + 40
    path.write_bytes(whole[:at] + bytes(60) + whole[at + 60 :])
    with pytest.raises(ConfigurationError, match="a broken zip"):
        read_recording(path)
    path.write_bytes(whole)
    monkeypatch.setattr("wings.pages.importing.har.ARCHIVE_BYTES", 2000)
    with pytest.raises(ConfigurationError, match="unpacked; export fewer pages"):
        read_recording(path)


def test_base64_with_line_breaks_or_without_padding_is_base64(tmp_path: Path) -> None:
    document = producers.charles()
    content = document["log"]["entries"][5]["response"]["content"]
    text = content["text"].rstrip("=")
    content["text"] = "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    found = imported(json.dumps(document).encode(), tmp_path)
    assert found.exchanges[5].body == SITE[5].content


def test_upgrades_and_failures_are_told_apart(tmp_path: Path) -> None:
    notes = imported(json.dumps(producers.http_toolkit()).encode(), tmp_path).notes
    assert any("left out, switched to another protocol: 1" in note for note in notes)
    assert any("left out, without a response: 1" in note for note in notes)
