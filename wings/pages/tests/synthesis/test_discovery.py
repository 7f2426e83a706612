"""Which bytes name which object, case by case."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.archive.reading import Archive, Entry, read_archive
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from wings.pages.tests.conftest import HEADER, Small
from wings.pages.verify import verify_archive

ROOT = "0,,a.example,text/html,200,4480,4000,root,,0,100\n"
Build = Callable[[str], Archive]


@pytest.fixture
def build(small: Small, tmp_path: Path) -> Build:
    def make(rows: str) -> Archive:
        built = build_page(small(ROOT + rows), tmp_path / "cache")
        assert verify_archive(built) == []
        return read_archive(built)

    return make


def entry(archive: Archive, row: str) -> Entry:
    return next(entry for entry in archive.entries if entry.id == row)


def text(archive: Archive, row: str) -> str:
    body = entry(archive, row).body
    return "" if body is None else body.read_text()


def carrier(archive: Archive, row: str) -> str | None:
    """The id of the row that names ``row``."""
    url = entry(archive, row).carrier
    return next((found.id for found in archive.entries if found.url == url), None)


def test_elements_stand_where_they_were_found(build: Build) -> None:
    page = build(
        "1,0,a.example,text/css,200,980,500,url-in-main-html,-90,10,5\n"
        "2,0,a.example,image/png,200,980,500,url-in-main-html,-50,50,5\n"
        "3,0,a.example,image/gif,200,980,500,url-in-main-html,40,140,5\n"
        "4,0,a.example,text/javascript,200,980,500,url-in-main-html,,,\n"
    )
    html = text(page, "0")
    assert re.findall(r"/(\d)\.", html) == ["1", "2", "4", "3"]
    assert html.startswith("<!doctype html>")
    assert '<link rel="icon" href="data:,">' in html
    assert "<title>A &lt;small&gt; page</title>" in html
    filler = len(html) - len(re.sub(r"<!--.*?-->", "", html))
    for row, share in (("1", 0.1), ("2", 0.5), ("3", 1.0)):
        before = html[: html.index(f"/{row}.")]
        assert len(before) - len(re.sub(r"<!--.*?-->", "", before)) == pytest.approx(
            share * filler, abs=10
        )


def test_a_style_sheet_imports_and_paints(build: Build) -> None:
    page = build(
        "1,0,a.example,text/css,200,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,image/png,200,980,500,url-in-css,,,\n"
        "3,1,c.example,text/css,200,980,500,url-in-css,,,\n"
        "4,3,c.example,image/gif,200,523,43,url-in-css,,,\n"
    )
    assert text(page, "1").startswith('@import "//c.example.p.test/3.css";.r2{background:url(')
    assert '<i class="r2"></i><i class="r4"></i>' in text(page, "0")
    assert (carrier(page, "2"), carrier(page, "3"), carrier(page, "4")) == ("1", "1", "3")
    assert [entry(page, row).how for row in "1234"] == ["parser", "css", "css", "css"]


def test_what_a_style_sheet_cannot_name_comes_after_it(build: Build) -> None:
    page = build(
        "1,0,a.example,text/css,200,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,text/javascript,200,980,500,url-in-css,,,\n"
    )
    assert carrier(page, "2") == "0"
    assert 'function c1(){ff("script","//b.example.p.test/2.js")}' in text(page, "0")
    assert 'href="//a.example.p.test/1.css" onload="c1()" onerror="c1()"' in text(page, "0")


def test_what_follows_a_background_comes_after_its_style_sheet(build: Build) -> None:
    page = build(
        "1,0,a.example,text/css,200,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,image/png,200,980,500,url-in-css,,,\n"
        "3,2,b.example,image/gif,200,523,43,time-inferred,,,\n"
    )
    assert 'function c1(){ff("img","//b.example.p.test/3.gif")}' in text(page, "0")


def test_a_script_asks_for_anything(build: Build) -> None:
    page = build(
        "1,0,a.example,text/javascript,200,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,text/html,200,980,500,url-in-js,,,\n"
        "3,1,b.example,application/json,200,980,500,url-in-js,,,\n"
        "4,3,b.example,image/gif,200,523,43,time-inferred,,,\n"
        "5,1,b.example,,200,1480,1000,time-inferred,,,\n"
        "6,1,b.example,,200,1479,999,time-inferred,,,\n"
        "7,1,b.example,text/plain,200,980,500,time-inferred,,,\n"
        "8,1,b.example,application/x-shockwave-flash,200,980,500,time-inferred,,,\n"
    )
    assert text(page, "1").startswith(
        'ff("iframe","//b.example.p.test/2.html");'
        'ff("json","//b.example.p.test/3.json",function(){ff("img","//b.example.p.test/4.gif")});'
        'ff("script","//b.example.p.test/5.bin");ff("img","//b.example.p.test/6.bin");'
        'ff("script","//b.example.p.test/7.txt");ff("img","//b.example.p.test/8.swf")/*'
    )
    assert "function ff(" in text(page, "0")
    assert ("Access-Control-Allow-Origin", "*") in entry(page, "3").headers
    assert entry(page, "5").headers == ()
    assert (carrier(page, "4"), entry(page, "4").how) == ("1", "script")


def test_a_frame_is_a_page_of_its_own(build: Build) -> None:
    page = build(
        "1,0,b.example,text/html,200,1980,1500,url-in-main-html,-90,10,50\n"
        "2,1,b.example,text/javascript,200,980,500,url-in-html,,,\n"
        "3,2,b.example,image/gif,200,523,43,url-in-js,,,\n"
    )
    assert entry(page, "1").how == "frame"
    assert "function ff(" in text(page, "1")
    assert "function ff(" not in text(page, "0")
    assert carrier(page, "3") == "2"


def test_a_scheme_is_written_where_it_changes(small: Small, tmp_path: Path) -> None:
    folder = small("")
    (folder / "resources.csv").write_text(
        HEADER.strip() + ",protocol\n"
        "0,,a.example,text/html,200,4480,4000,root,,0,100,http\n"
        "1,0,b.example,text/css,200,980,500,url-in-main-html,-90,10,5,h2\n"
        "2,1,b.example,image/png,200,980,500,url-in-css,,,,h2\n"
        "3,1,a.example,image/png,200,980,500,url-in-css,,,,http\n"
        "4,0,b.example,text/javascript,200,980,500,url-in-main-html,-80,20,5,h2\n"
        "5,4,b.example,image/gif,200,523,43,url-in-js,,,,h2\n"
        "6,4,a.example,image/gif,200,523,43,url-in-js,,,,http\n"
        "7,0,c.example,text/html,302,480,,url-in-main-html,,,,https\n"
        "8,7,b.example,text/html,200,1980,1500,redirect,,,,h2\n"
        "9,8,c.example,image/gif,200,523,43,url-in-html,,,,https\n"
    )
    page = read_archive(build_page(folder, tmp_path / "cache"))
    html, css, script = text(page, "0"), text(page, "1"), text(page, "4")
    assert '"https://b.example.p.test/1.css"' in html
    assert "url(//b.example.p.test/2.png)" in css
    assert "url(http://a.example.p.test/3.png)" in css
    assert '"https://b.example.p.test/5.gif"' in script
    assert '"//a.example.p.test/6.gif"' in script
    assert '"https://c.example.p.test/7.html"' in html
    assert entry(page, "7").location == "https://b.example.p.test/8.html"
    assert '"//c.example.p.test/9.gif"' in text(page, "8")
    found = [(entry(page, row).protocol, entry(page, row).headers_size) for row in "0719"]
    assert found == [("http/1.1", 480), ("http/1.1", 480), ("h2", None), ("http/1.1", 480)]


def test_what_fails_names_nothing(build: Build) -> None:
    page = build(
        "1,0,a.example,text/javascript,404,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,image/gif,200,523,43,url-in-js,,,\n"
        "3,0,a.example,text/html,503,980,500,url-in-main-html,-80,20,5\n"
        "4,3,b.example,image/gif,200,523,43,url-in-html,,,\n"
    )
    assert (carrier(page, "2"), carrier(page, "4")) == ("0", "0")
    assert '1.js" onload="c1()" onerror="c1()"' in text(page, "0")
    assert '3.html" onload="c3()" onerror="c3()"' in text(page, "0")
    assert [entry(page, row).status for row in "13"] == [404, 503]


@pytest.mark.parametrize("mime", ["text/xml", "application/ld+json", "application/pdf", "text/csv"])
def test_what_browsers_withhold_is_asked_for_with_leave(build: Build, mime: str) -> None:
    page = build(f"1,0,b.example,{mime},200,980,500,url-in-main-html,-90,10,5\n")
    assert "<script async crossorigin src=" in text(page, "0")
    assert ("Access-Control-Allow-Origin", "*") in entry(page, "1").headers


def test_a_head_may_have_another_size(small: Small, tmp_path: Path) -> None:
    folder = small("")
    (folder / "resources.csv").write_text(
        HEADER.strip() + ",protocol,head_bytes\n"
        "0,,a.example,text/html,200,4700,4000,root,,0,100,http,700\n"
        "1,0,b.example,image/gif,200,373,43,url-in-main-html,,,,http,330\n"
        "2,0,b.example,image/gif,204,900,,url-in-main-html,,,,http,900\n"
        "3,0,b.example,image/gif,200,523,43,url-in-main-html,,,,http,\n"
    )
    page = read_archive(build_page(folder, tmp_path / "cache"))
    sizes = [(entry(page, row).headers_size, entry(page, row).body_size) for row in "0123"]
    assert sizes == [(700, 4000), (330, 43), (900, 0), (480, 43)]


def test_a_redirect_is_what_its_end_is(build: Build) -> None:
    page = build(
        "1,0,a.example,text/html,302,980,500,url-in-main-html,-90,10,5\n"
        "2,1,b.example,text/plain,301,480,,redirect,,,\n"
        "3,2,b.example,image/gif,200,523,43,redirect,,,\n"
        "4,1,b.example,text/javascript,200,980,500,time-inferred,,,\n"
    )
    assert '<img alt="" src="//a.example.p.test/1.html" onload="c1()"' in text(page, "0")
    assert 'function c1(){ff("script","//b.example.p.test/4.js")}' in text(page, "0")
    assert entry(page, "1").location == "http://b.example.p.test/2.txt"
    assert entry(page, "2").location == entry(page, "3").url
    assert [entry(page, row).depth for row in "1234"] == [1, 2, 3, 2]
    assert carrier(page, "3") == "2"


def test_an_empty_parent_names_nothing_but_keeps_the_order(build: Build) -> None:
    page = build(
        "1,0,a.example,text/javascript,200,980,500,url-in-main-html,-90,10,5\n"
        "2,1,a.example,text/javascript,200,350,,url-in-js,,,\n"
        "3,2,a.example,image/gif,200,523,43,url-in-js,,,\n"
    )
    assert entry(page, "2").body is None
    assert 'ff("script","//a.example.p.test/2.js",function(){ff("img",' in text(page, "1")
    assert entry(page, "3").parent == entry(page, "2").url
    assert carrier(page, "3") == "1"


def test_a_script_that_is_just_too_small_takes_header_bytes(build: Build) -> None:
    page = build(
        "1,0,a.example,text/javascript,200,500,20,url-in-main-html,-90,10,5\n"
        "2,1,a.example,image/gif,200,523,43,url-in-js,,,\n"
    )
    call = 'ff("img","//a.example.p.test/2.gif")'
    assert text(page, "1") == call
    assert entry(page, "1").headers_size == 500 - len(call)


def test_a_page_too_small_for_its_references_is_refused(small: Small, tmp_path: Path) -> None:
    root = "0,,a.example,text/html,200,340,10,root,,0,100\n"
    folder = small(root + "1,0,a.example,image/gif,200,523,43,url-in-main-html,,,\n")
    with pytest.raises(ConfigurationError, match="row 0: the page cannot hold its references"):
        build_page(folder, tmp_path / "cache")


def test_a_root_that_is_no_document_is_refused(small: Small, tmp_path: Path) -> None:
    folder = small("0,,a.example,image/png,200,980,500,root,,0,100\n")
    with pytest.raises(ConfigurationError, match="row 0: the page itself is not text/html"):
        build_page(folder, tmp_path / "cache")


def test_a_root_behind_redirects(small: Small, tmp_path: Path) -> None:
    folder = small(
        "0,,a.example,text/html,301,480,,root,,0,10\n"
        "1,0,b.example,text/html,200,1480,1000,redirect,1,11,10\n"
        "2,0,b.example,image/gif,200,523,43,time-inferred,5,15,10\n"
    )
    built = build_page(folder, tmp_path / "cache")
    assert verify_archive(built) == []
    page = read_archive(built)
    assert page.root_url == "http://a.example.p.test/0.html"
    assert carrier(page, "2") == "1"
