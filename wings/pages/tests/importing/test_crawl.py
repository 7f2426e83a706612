"""Crawls of several pages: each page gets its document, and each resource once with its body."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from testbed.base.errors import ConfigurationError
from wings.pages.exchange import Recording
from wings.pages.tests.importing.site import moment
from wings.pages.tests.importing.test_warc import make_wacz, read

ONE, TWO = "https://a.example/", "https://a.example/two/"
LIB, PIC = "https://a.example/lib.js", "https://cdn.example/pic.svg"
HTML = b"<!doctype html><script src=/lib.js></script><img src='https://cdn.example/pic.svg'>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
NAMES = {"js": "text/javascript", "svg": "image/svg+xml", "css": "text/css", "png": "image/png"}


@dataclass(frozen=True)
class Got:
    """One exchange of a crawl; ``revisit`` is the body that is elsewhere in it."""

    url: str
    ms: int = 0
    body: bytes = b""
    referer: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    revisit: bytes = b""
    fields: tuple[tuple[str, str], ...] = ()
    dest: str = ""


def page(url: str, ms: int, body: bytes = HTML) -> Got:
    return Got(url, ms, body, dest="document")


LIB_BODY = b"var a=1;" * 99
CRAWL = (
    page(ONE, 0), Got(LIB, 1000, LIB_BODY, ONE), Got(PIC, 2000, SVG, ONE),
    page(TWO, 3000), Got(LIB, 4000, referer=TWO, revisit=LIB_BODY), Got(PIC, 5000, SVG, ONE),
)  # fmt: skip
PAGES = [{"id": "p1", "url": ONE, "title": "One"}, {"id": "p2", "url": TWO, "title": "Two"}]


def warc(*crawl: Got) -> bytes:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    for got in crawl:
        mime = NAMES.get(got.url.rpartition(".")[2], "text/html")
        head = [("Content-Type", mime), *got.headers]
        if not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in got.headers):
            head.append(("Content-Length", str(len(got.body or got.revisit))))
        described = {"WARC-Date": moment(got.ms), **dict(got.fields)}
        headers = StatusAndHeaders(f"{got.status} OK", head, protocol="HTTP/1.1")
        if got.revisit:
            whole = writer.create_warc_record(got.url, "response", payload=io.BytesIO(got.revisit),
                                              http_headers=headers)  # fmt: skip
            digest = whole.rec_headers.get_header("WARC-Payload-Digest")
            record = writer.create_revisit_record(
                got.url, digest, got.url, moment(0), headers, described
            )
        else:
            record = writer.create_warc_record(
                got.url, "response", payload=io.BytesIO(got.body), http_headers=headers,
                warc_headers_dict=described,
            )  # fmt: skip
        asked = [("Referer", got.referer)] if got.referer else []
        asked += [("Sec-Fetch-Dest", got.dest)] if got.dest else []
        ids = {"WARC-Concurrent-To": record.rec_headers.get_header("WARC-Record-ID")}
        request = StatusAndHeaders("GET / HTTP/1.1", asked, is_http_request=True)
        writer.write_record(record)
        writer.write_record(writer.create_warc_record(
            got.url, "request", http_headers=request, warc_headers_dict=ids))  # fmt: skip
    return out.getvalue()


def info(url: str, page_id: str, *urls: str) -> bytes:
    out = io.BytesIO()
    said = {"pageid": page_id, "url": url, "urls": {each: {"status": 200} for each in urls}}
    writer = WARCWriter(out, gzip=True)
    writer.write_record(writer.create_warc_record(
        f"urn:pageinfo:{url}", "resource", payload=io.BytesIO(json.dumps(said).encode()),
        warc_content_type="application/json"))  # fmt: skip
    return out.getvalue()


def of(folder: Path, data: bytes, pages: list[dict[str, str]], **asked: str) -> Recording:
    return read(folder / "x", make_wacz({"archive/data.warc.gz": data}, pages), **asked)


def urls(recording: Recording) -> list[str]:
    return [exchange.url for exchange in recording.exchanges]


@pytest.mark.parametrize("listed", [True, False])
def test_each_page_has_its_document_and_each_file_once(listed: bool, tmp_path: Path) -> None:
    for start, (page_id, url) in enumerate((("p1", ONE), ("p2", TWO))):
        asked = {"page": page_id} if listed else {"url": url}
        found = of(tmp_path, warc(*CRAWL), PAGES if listed else [], **asked)
        assert urls(found) == [url, LIB, PIC]
        assert [x.body for x in found.exchanges] == [HTML, LIB_BODY, SVG], start
        assert any("of other pages by their time and Referer: 3" in n for n in found.notes)


def test_a_first_page_whose_body_is_another_pages_has_it(tmp_path: Path) -> None:
    crawl = (
        Got(ONE, 0, revisit=HTML),
        Got(LIB, 1, LIB_BODY, ONE),
        Got(PIC, 2, SVG, ONE),
        page(TWO, 3),
    )
    found = of(tmp_path, warc(*crawl), PAGES)
    assert (urls(found), found.exchanges[0].body) == ([ONE, LIB, PIC], HTML)


def test_a_revisit_of_nothing_is_named(tmp_path: Path) -> None:
    crawl = (page(ONE, 0), Got(LIB, 1, referer=ONE, revisit=LIB_BODY), Got(PIC, 2, SVG, ONE))
    found = of(tmp_path, warc(*crawl), [])
    assert found.exchanges[1].made_up
    assert any(f"Revisits of what is not in the file, taken as not recorded: 1 ({LIB})" in note
               for note in found.notes)  # fmt: skip


def test_a_revalidated_file_has_the_answer_that_it_had_before(tmp_path: Path) -> None:
    crawl = (*CRAWL[:3], page(TWO, 3), Got(LIB, 4, referer=TWO, status=304, revisit=LIB_BODY))
    found = of(tmp_path, warc(*crawl), PAGES, page="p2")
    assert (urls(found)[1], found.exchanges[1].body, found.exchanges[1].status) == (
        LIB,
        LIB_BODY,
        200,
    )


def test_a_file_that_a_crawl_kept_once_is_in_both_pages(tmp_path: Path) -> None:
    sheet = Got("https://a.example/s.css", 3, b"p{background:url(/bg.png)}", ONE)
    picture = Got("https://a.example/bg.png", 4, b"1234", sheet.url)
    html = HTML + b"<link rel=stylesheet href=s.css>"
    two = page(TWO, 9, html.replace(b"=s.css", b"=/s.css"))
    crawl = (page(ONE, 0, html), *CRAWL[1:3], sheet, picture, two)
    found = of(tmp_path, warc(*crawl), PAGES, page="p2")
    assert sorted(urls(found)) == sorted([TWO, LIB, PIC, sheet.url, picture.url])
    by_url = {x.url: x for x in found.exchanges}
    assert by_url[LIB].body == LIB_BODY and by_url[PIC].initiator == TWO
    # A browser loads a picture of a style sheet only where it is shown.
    assert [x.url for x in found.exchanges if x.after_load] == [picture.url]


def test_pages_that_were_loaded_at_once_are_told_by_the_crawlers_words(tmp_path: Path) -> None:
    by = {key: (("WARC-Page-ID", key),) for key in ("p1", "p2")}
    crawl = (
        Got(ONE, 0, HTML, fields=by["p1"]), Got(TWO, 1, HTML, fields=by["p2"]),
        Got(PIC, 2, SVG, ONE, fields=by["p1"]), Got(LIB, 3, LIB_BODY, ONE, fields=by["p1"]),
        Got(PIC, 4, SVG, ONE, fields=by["p2"]), Got(LIB, 5, LIB_BODY, TWO, fields=by["p2"]),
    )  # fmt: skip
    assert urls(of(tmp_path, warc(*crawl), PAGES)) == [ONE, PIC, LIB]
    assert urls(of(tmp_path, warc(*crawl), PAGES, page="p2")) == [TWO, PIC, LIB]


def test_what_a_crawler_says_that_a_page_asked_for_is_what_it_gets(tmp_path: Path) -> None:
    extra = Got("https://a.example/behaviour.js", 2500, b"1", ONE)
    data = warc(*CRAWL[:3], extra, page(TWO, 3000))
    data += info(ONE, "p1", ONE, LIB, PIC) + info(TWO, "p2", TWO, LIB)
    assert urls(of(tmp_path, data, PAGES)) == [ONE, LIB, PIC]
    assert urls(of(tmp_path, data, [], url=TWO)) == [TWO, LIB]


def test_redirects_lead_to_their_page_and_a_page_seen_twice_is_two(tmp_path: Path) -> None:
    old = Got("https://old.example/", 2900, status=301, headers=(("Location", TWO),))
    again = [Got(g.url, g.ms + 9000, g.body, g.referer, revisit=g.revisit) for g in CRAWL[3:]]
    crawl = (*CRAWL[:3], old, *CRAWL[3:], *again)
    pages = [{**PAGES[0], "ts": moment(10)}, {**PAGES[1], "ts": moment(3100)},
             {"id": "p3", "url": TWO, "ts": moment(12100)}]  # fmt: skip
    assert urls(of(tmp_path, warc(*crawl), pages, page="p2")) == [old.url, TWO, LIB, PIC]
    assert urls(of(tmp_path, warc(*crawl), pages, page="p3")) == [TWO, LIB, PIC]


def test_a_first_page_that_no_server_has_is_passed_over(tmp_path: Path) -> None:
    pages = [{"id": "0", "url": "about:blank"}, {"id": "f", "url": "file:///x.html"}, *PAGES]
    found = of(tmp_path, warc(*CRAWL), pages)
    assert urls(found) == [ONE, LIB, PIC]
    assert any("passed over: 2 (about:blank, file:///x.html)" in note for note in found.notes)


def test_a_wacz_of_waczs_and_its_extra_pages(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("datapackage.json", '{"profile": "multi-wacz-package"}')
        archive.writestr("a.wacz", make_wacz({"archive/a.warc.gz": warc(*CRAWL[:3])}, PAGES[:1]))
        inner = io.BytesIO(make_wacz({"archive/b.warc.gz": warc(*CRAWL[3:])}, []))
        with zipfile.ZipFile(inner, "a") as more:
            more.writestr("pages/extraPages.jsonl", json.dumps(PAGES[1]))
        archive.writestr("b.wacz", inner.getvalue())
    for page_id, url in (("p1", ONE), ("p2", TWO)):
        assert urls(read(tmp_path / "x", out.getvalue(), page=page_id)) == [url, LIB, PIC]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"page": "p9"}, "--page 'p9': "),
        ({"url": "https://b.example/"}, "--url https://b.example/: "),
    ],
)  # fmt: skip
def test_a_page_that_is_not_there_lists_what_is(
    asked: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of(tmp_path, warc(*CRAWL), PAGES, **asked)
    pages = "no such page with a response; the pages are p1 (https://a.example/), p2 ("
    assert f"{said}{pages}" in str(caught.value)


PACKED = gzip.compress(
    b"<!doctype html>" + b"".join(b"<p>%d" % (n * 7919) for n in range(400)), mtime=0
)
LONG = (("Content-Length", "4000"),)
CODED = (("Content-Encoding", "gzip"), ("Content-Length", str(len(PACKED))))
CHUNKED = (("Transfer-Encoding", "chunked"),)
KEPT = "kept as far as they go: 1"


@pytest.mark.parametrize(
    ("got", "note", "size"),
    [
        (Got(ONE, 0, HTML[:40], fields=(("WARC-Truncated", "length"),)),
         f"cut short by the recorder (WARC-Truncated: length), {KEPT} (40 of 40 bytes, {ONE})", 40),
        (Got(ONE, 0, b"28\r\n" + HTML[:40] + b"\r\n40\r\nxx", headers=CHUNKED),
         f"Chunked bodies that end before their last chunk, {KEPT} (42 of ? bytes, {ONE})", 42),
        (Got(ONE, 0, HTML, headers=LONG),
         f"shorter than their Content-Length, {KEPT} ({len(HTML)} of 4000", len(HTML)),
        (Got("https://a.example/x.png", 0, b"1" * 50, ONE, headers=LONG),
         "shorter than their Content-Length, made up in their stated size: 1 (50 of 4000", 4000),
        (Got(ONE, 0, PACKED[:700], headers=CODED),
         f"shorter than their Content-Length, {KEPT} (700 of {len(PACKED)}", None),
        (Got(ONE, 0, HTML, headers=CODED), "", None),
    ],
)  # fmt: skip
def test_a_body_that_is_cut_is_told_by_its_cause(
    got: Got, note: str, size: int | None, tmp_path: Path
) -> None:
    crawl = (got,) if got.url == ONE else (page(ONE, 0), got)
    found = of(tmp_path, warc(*crawl), [])
    notes = [
        each
        for each in found.notes
        if " cut short" in each or " they go" in each or "made up" in each
    ]
    assert note in " ".join(notes) and len(notes) == bool(note)
    cut = next(x for x in found.exchanges if x.url == got.url)
    assert cut.body_size == size or size is None
    assert cut.made_up == (got.url != ONE)
