"""WARC and WACZ files as crawlers write them."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.importing import warc
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page
from wings.pages.tests.importing.site import CSS, ROOT, SITE, Sent, moment
from wings.pages.verify import verify_archive


def make_warc(
    site: tuple[Sent, ...] = SITE, *, packed: bool = True, chunked: bool = False, raw: bool = True
) -> bytes:
    """Request and response records; ``raw``: bodies as on the wire, else decoded."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=packed)
    for sent in site:
        record = make_response(writer, sent, chunked=chunked, raw=raw)
        asked = [("Host", "x"), *([("Referer", sent.initiator)] if sent.initiator else [])]
        head = StatusAndHeaders("GET / HTTP/1.1", asked, is_http_request=True)
        described = {"WARC-Concurrent-To": record.rec_headers.get_header("WARC-Record-ID"),
                     "WARC-Record-ID": make_id("request", sent.url),
                     "WARC-Date": moment(sent.start_ms)}  # fmt: skip
        request = writer.create_warc_record(sent.url, "request", http_headers=head,
                                            warc_headers_dict=described)  # fmt: skip
        writer.write_record(record)
        writer.write_record(request)
    return out.getvalue()


def make_id(kind: str, url: str) -> str:
    """The same each time: a file of the same records has the same bytes, wherever it is cut."""
    return f"<urn:uuid:{uuid5(NAMESPACE_URL, f'{kind} {url}')}>"


def make_response(writer: Any, sent: Sent, *, chunked: bool, raw: bool) -> Any:
    body = sent.wire if raw else sent.content
    headers = list(sent.headers)
    if chunked:
        headers.append(("Transfer-Encoding", "chunked"))
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    else:
        headers.append(("Content-Length", str(len(sent.wire))))
    described = {"WARC-Record-ID": make_id("response", sent.url),
                 "WARC-Date": moment(sent.start_ms)}  # fmt: skip
    if sent.protocol == "h2":
        described["WARC-Protocol"] = "h2"
    head = StatusAndHeaders(f"{sent.status} OK", headers, protocol="HTTP/1.1")
    return writer.create_warc_record(sent.url, "response", payload=io.BytesIO(body),
                                     http_headers=head, warc_headers_dict=described)  # fmt: skip


def make_wacz(warcs: dict[str, bytes], pages: list[dict[str, str]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("datapackage.json", "{}")
        lines = [{"format": "json-pages-1.0", "id": "pages", "title": "All"}, *pages]
        archive.writestr("pages/pages.jsonl", "".join(json.dumps(x) + "\n" for x in lines))
        for name, data in warcs.items():
            archive.writestr(name, data)
    return out.getvalue()


def read(path: Path, data: bytes, **asked: str) -> Recording:
    path.write_bytes(data)
    found = read_recording(path, **asked)
    assert isinstance(found, Recording)
    written = write_page(path.parent / "page", found, WriteOptions(keep_secrets=True, replace=True))
    assert written.kind == "archive"
    assert verify_archive(path.parent / "page") == []
    return found


@pytest.mark.parametrize("packed", (True, False))
@pytest.mark.parametrize("chunked", (True, False))
def test_bodies_come_out_as_served(tmp_path: Path, packed: bool, chunked: bool) -> None:
    recording = read(tmp_path / "x", make_warc(packed=packed, chunked=chunked))
    assert [exchange.url for exchange in recording.exchanges] == [sent.url for sent in SITE]
    for exchange, sent in zip(recording.exchanges, SITE, strict=True):
        assert exchange.body == sent.wire
        assert (exchange.protocol, exchange.start_ms) == (sent.protocol, sent.start_ms)
        assert exchange.decoded_size == len(sent.content)
    assert recording.exchanges[6].initiator == SITE[6].initiator
    assert recording.notes == ()


def test_a_head_over_http_1_has_its_size(tmp_path: Path) -> None:
    recording = read(tmp_path / "x", make_warc())
    script = recording.exchanges[3]
    assert script.headers_size == len(SITE[3].head)


def test_bodies_that_a_browser_decoded_are_compressed_again(tmp_path: Path) -> None:
    recording = read(tmp_path / "x", make_warc(raw=False))
    assert [x.body_size for x in recording.exchanges] == [len(sent.wire) for sent in SITE]
    assert recording.exchanges[2].decoded_size == len(CSS)
    assert any(note.startswith("Bodies kept decoded") for note in recording.notes)


def test_what_a_crawler_asks_of_each_host_is_left_out(tmp_path: Path) -> None:
    robots = tuple(
        Sent(f"{host}robots.txt", "text/plain", b"User-agent: *", status=404)
        for host in (ROOT, "https://cdn.site.example/")
    )
    found = read(tmp_path / "x", make_warc((*SITE, *robots)))
    assert [exchange.url for exchange in found.exchanges] == [sent.url for sent in SITE]
    assert "robots.txt, which no browser asks for: 2" in " ".join(found.notes)
    alone = read(tmp_path / "x", make_warc((*SITE, robots[0])), url=robots[0].url)
    assert alone.url == robots[0].url


def test_what_wget_writes_is_read(tmp_path: Path) -> None:
    """As ``wget -H -p --warc-file``: addresses in brackets, times in whole seconds."""
    data = re.sub(rb"(?<=WARC-Target-URI: )\S+", rb"<\g<0>>", make_warc(packed=False))
    data = re.sub(rb"(WARC-Date: \S+)\.\d+Z", rb"\1Z", data)
    assert data.count(b"<https://") >= len(SITE)
    found = read(tmp_path / "x", data)
    assert sorted(x.url for x in found.exchanges) == sorted(sent.url for sent in SITE)


def test_a_revisit_gets_the_body_that_it_points_to(tmp_path: Path) -> None:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    for sent in SITE[1:3]:
        record = make_response(writer, sent, chunked=False, raw=True)
        writer.write_record(record)
    digest = record.rec_headers.get_header("WARC-Payload-Digest")
    again = writer.create_revisit_record(
        ROOT + "again.css", digest, SITE[2].url, moment(0), warc_headers_dict={}
    )
    writer.write_record(again)
    recording = read(tmp_path / "x", out.getvalue())
    found = {exchange.url: exchange for exchange in recording.exchanges}
    assert found[ROOT + "again.css"].body == SITE[2].wire


def test_a_wacz_names_its_page(tmp_path: Path) -> None:
    page = {"id": "1", "url": ROOT, "title": "The page"}
    data = make_wacz({"archive/data.warc.gz": make_warc()}, [page])
    recording = read(tmp_path / "x", data)
    assert (recording.url, recording.title) == (ROOT, "The page")


def test_of_a_wacz_with_several_pages_one_is_read(tmp_path: Path) -> None:
    other = Sent("https://other.example/", "text/html", b"<p>other", start_ms=5000)
    pages = [{"id": "1", "url": "http://www.site.example/", "title": "One"},
             {"id": "2", "url": other.url, "title": "Two"}]  # fmt: skip
    warcs = {"archive/a.warc.gz": make_warc(), "archive/b.warc": make_warc((other,), packed=False)}
    data = make_wacz(warcs, pages)
    first, second = read(tmp_path / "x", data), read(tmp_path / "x", data, page="2")
    assert [x.url for x in first.exchanges] == [sent.url for sent in SITE]
    assert [x.url for x in second.exchanges] == [other.url]
    assert any("of other pages" in note for note in first.notes)


def test_names_in_a_zip_are_no_paths(tmp_path: Path) -> None:
    names = {"archive/../../../outside.warc": make_warc(), "/archive/x.warc": b"WARC/1.0\r\n"}
    (tmp_path / "in").mkdir()
    read(tmp_path / "in" / "x", make_wacz(names, []))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "ARCHIVE_BYTES", 1 << 20)
    big = Sent(ROOT, "text/html", bytes(2 << 20))
    path = tmp_path / "x"
    path.write_bytes(make_warc((big,)))
    with pytest.raises(ConfigurationError, match="more than 1 MiB of records"):
        read_recording(path)


def test_a_line_without_end_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"WARC/1.0\r\nX: " + b"a" * (3 << 20)))
    with pytest.raises(ConfigurationError, match="a line of more than"):
        read_recording(path)


@pytest.mark.parametrize("size", (3, 200, 550))
def test_a_truncated_file_is_told(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(make_warc(packed=False)[:size])
    with pytest.raises(ConfigurationError, match=r"too early|broken WARC|not recognised|no resp"):
        read_recording(path)
    path.write_bytes(make_warc()[:size])
    with pytest.raises(ConfigurationError, match=r"too early|broken WARC|not recognised"):
        read_recording(path)


def test_a_zip_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(make_wacz({"readme.txt": b"hello"}, []))
    with pytest.raises(ConfigurationError, match="no responses in this WACZ"):
        read_recording(path)
    path.write_bytes(make_wacz({"archive/a.warc": make_warc()}, [])[:-60])
    with pytest.raises(ConfigurationError, match=r"broken WACZ|no responses"):
        read_recording(path)
