"""Record folders of mahimahi."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.importing.mahimahi import message_class
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.importing.site import ROOT, SITE, Sent
from wings.pages.verify import verify_archive


def record(sent: Sent, *, chunked: bool = False) -> bytes:
    scheme, _, rest = sent.url.partition("://")
    host, _, path = rest.partition("/")
    asked = [("Host", host), *([("Referer", sent.initiator)] if sent.initiator else [])]
    headers, body = list(sent.headers), sent.wire
    if chunked:
        headers.append(("Transfer-Encoding", "chunked"))
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"

    def pairs(values: list[tuple[str, str]]) -> list[dict[str, bytes]]:
        return [{"key": name.encode(), "value": value.encode()} for name, value in values]

    message = message_class()(
        ip=b"192.0.2.1",
        port=443 if scheme == "https" else 80,
        scheme=2 if scheme == "https" else 1,
        request={"first_line": f"GET /{path} HTTP/1.1".encode(), "header": pairs(asked)},
        response={
            "first_line": f"HTTP/1.1 {sent.status} OK".encode(),
            "header": pairs(headers),
            "body": body,
        },
    )
    data: bytes = message.SerializeToString()
    return data


def make_folder(folder: Path, *, chunked: bool = False) -> Path:
    folder.mkdir()
    for index, sent in enumerate(SITE):
        data = record(sent, chunked=chunked)
        (folder / f"save.{index * 7919 % 10007:06}").write_bytes(data)
    return folder


def test_the_wire_format_is_mahimahis() -> None:
    # By hand from http_record.proto: port = 2, scheme = 3 (varints), request = 4 with its
    # first_line = 1 and a header = 2 of key = 1 and value = 2.
    header = b"\x12\x08\x0a\x01A\x12\x01B"
    header = b"\x12\x06\x0a\x01A\x12\x01B"
    request = b"\x0a\x05GET /" + header
    data = b"\x10\xbb\x03\x18\x02" + b"\x22" + bytes((len(request),)) + request
    found = message_class().FromString(data)
    assert (found.port, found.scheme, found.request.first_line) == (443, 2, b"GET /")
    assert (found.request.header[0].key, found.request.header[0].value) == (b"A", b"B")


@pytest.mark.parametrize("chunked", (True, False))
def test_a_folder_comes_out_as_served_the_page_first(tmp_path: Path, chunked: bool) -> None:
    found = read_recording(make_folder(tmp_path / "record", chunked=chunked))
    assert isinstance(found, Recording)
    assert found.url == "http://www.site.example/" or found.url == ROOT
    by_url = {exchange.url: exchange for exchange in found.exchanges}
    for sent in SITE:
        assert by_url[sent.url].body == sent.wire
        assert by_url[sent.url].status == sent.status
    assert by_url[ROOT + "style.css"].initiator == ROOT
    order = [exchange.url for exchange in found.exchanges]
    assert order.index(ROOT) < order.index(ROOT + "style.css")
    assert order.index(SITE[3].url) < order.index(SITE[6].url)
    write_page(tmp_path / "page", found, WriteOptions(keep_secrets=True))
    assert verify_archive(tmp_path / "page") == []


def test_the_caller_names_the_page(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "record")
    found = read_recording(folder, url="http://www.site.example/")
    assert isinstance(found, Recording)
    assert [x.url for x in found.exchanges][:2] == ["http://www.site.example/", ROOT]


def test_other_files_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "record")
    (folder / "notes.txt").write_text("hello")
    (folder / "link").symlink_to("/etc/passwd")
    found = read_recording(folder)
    assert isinstance(found, Recording)
    assert len(found.exchanges) == len(SITE)
    assert any("no exchanges of mahimahi: 1 (notes.txt)" in note for note in found.notes)
    assert any("no files: 1 (link)" in note for note in found.notes)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no exchange of mahimahi"):
        read_recording(tmp_path)
