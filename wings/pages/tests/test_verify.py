"""Each way in which an archive, also one that was built from a table, can be broken is found."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import read_archive
from testbed.pages.build import build_page
from wings.pages.exchange import PageExchange
from wings.pages.har_export import write_archive
from wings.pages.tests.conftest import NAMES, PAGES, Small
from wings.pages.tests.recordings import (
    PIXEL,
    ROOT_URL,
    body_of,
    edit_entry,
    make_exchange,
    make_recording,
)
from wings.pages.verify import count_repeats, verify_archive, verify_table, verify_tls

STYLE_URL = "https://www.example.com/a.css?v=1&b="


def write(folder: Path, *more: PageExchange) -> Path:
    write_archive(folder, make_recording(*more), licence="none")
    return folder


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = write(tmp_path / "mine")
    assert verify_archive(folder) == []
    return folder


def test_a_body_that_was_changed(page: Path) -> None:
    body_of(page, 3).write_bytes(PIXEL[:-1] + b"!")
    url = "http://img.example.com:8080/p.gif"
    assert verify_archive(page) == [f"{url}: the body is not what its hash says"]


def test_a_body_that_is_gone(page: Path) -> None:
    body_of(page, 3).unlink()
    assert "No such file" in "\n".join(verify_archive(page))


def test_a_body_that_is_a_link(page: Path, tmp_path: Path) -> None:
    body = body_of(page, 3)
    body.rename(tmp_path / "elsewhere")
    body.symlink_to(tmp_path / "elsewhere")
    assert "is a link" in "\n".join(verify_archive(page))


def test_a_body_that_does_not_decode(page: Path) -> None:
    body_of(page, 1).write_bytes(bytes(39))
    assert f"{STYLE_URL}: the body does not decode: " in "\n".join(verify_archive(page))


def test_a_body_that_decodes_to_far_too_much(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(10_000_000), mtime=0)
    headers = (("content-encoding", "gzip"),)
    exchange = make_exchange("https://www.example.com/b", bomb, headers=headers, decoded_size=9)
    (problem,) = verify_archive(write(tmp_path / "bomb", exchange))
    assert problem.startswith("https://www.example.com/b: the body does not decode: ")


def test_files_that_are_not_ours(page: Path, tmp_path: Path) -> None:
    (page / "notes.txt").touch()
    (page / "bodies" / "stray").touch()
    (page / "tls").symlink_to(tmp_path)
    assert verify_archive(page) == [
        "notes.txt: no part of a page",
        "tls: is a link; a page holds its files itself",
        "stray: a body that no entry uses",
    ]


def test_facts_that_are_wrong(page: Path) -> None:
    (page / "page.toml").write_text("title = 3")
    assert any("title is 3" in problem for problem in verify_archive(page))


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        (1, lambda e: e["response"].update(bodySize=3), "recorded 3"),
        (1, lambda e: e["response"]["content"].update(size=3), "decodes to 19, recorded 3"),
        (1, lambda e: e["response"].update(headers=[]), "decodes to 39, recorded 19"),
        (1, lambda e: e.update(_body=None), "no body, but sizes are not 0"),
        (1, lambda e: e["response"].update(status=204), "which a response to GET with status 204"),
        (1, lambda e: e["request"].update(method="HEAD"), "which a response to HEAD"),
        (2, lambda e: e["request"].update(method="TRACE"), "nginx refuses the method TRACE"),
        (1, lambda e: e["response"].update(httpVersion="h3"), "neither HTTP/1.1 nor h2"),
        (3, lambda e: e["response"].update(httpVersion="h2"), "h2 without TLS"),
        (3, lambda e: e["response"].update(headersSize=9), "a head of 9 bytes cannot be made"),
        (3, lambda e: e["response"].update(status=100), "status 100 cannot be replayed"),
        (3, lambda e: e["response"].update(headers=[{"name": "a", "value": "b\n"}]), "no header"),
        (2, lambda e: e["response"].update(redirectURL=""), "but the Location header leads to"),
        (1, lambda e: e.update(_carrier=None), "nothing names it: no carrier"),
        (1, lambda e: e.update(_parent="http://x.test/"), "its parent http://x.test/ is not in"),
        (0, lambda e: e.update(_parent=ROOT_URL), "the root has the parent"),
        (0, lambda e: e.update(_how="parser"), "the first entry, and only it, is the root"),
        (1, lambda e: e.update(_how="root"), "the first entry, and only it, is the root"),
        (1, lambda e: e.update(_id="0"), "_id 0: 2 entries"),
        (1, lambda e: e.update(_parent=STYLE_URL), f"{STYLE_URL}: is its own ancestor"),
        (1, lambda e: e.update(_how="redirect"), f"{ROOT_URL} does not redirect to it"),
        (3, lambda e: e["request"].update(url="http://x.test/a"), "p.gif, which is not in the"),
        (3, lambda e: e["request"].update(url="http://127.0.0.1/a"), "127.0.0.1: an address"),
        (3, lambda e: e["request"].update(url="http://a.localhost/a"), "their own machine"),
        (3, lambda e: e["request"].update(url="http://1.2/a"), "it ends in a number"),
        (3, lambda e: e["request"].update(url="http://-a.test/a"), "is no host name that nginx"),
        (3, lambda e: e["request"].update(url="http://www.example.com:443/a"), "both http and"),
        (1, lambda e: e["request"].update(url="https://a.test:80/"), "https on port 80"),
    ],
)
def test_a_har_that_does_not_fit(
    page: Path, index: int, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit_entry(page, index, change)
    assert message in "\n".join(verify_archive(page))


def test_more_hosts_than_addresses(tmp_path: Path) -> None:
    many = [make_exchange(f"https://h{index}.example.com/") for index in range(249)]
    assert verify_archive(write(tmp_path / "many", *many)) == [
        "251 hosts; the lab has addresses for 250"
    ]


def redirect(url: str, to: str, **more: Any) -> PageExchange:
    return make_exchange(url, status=302, headers=(("location", to),), **more)


def test_redirects_in_a_circle(tmp_path: Path) -> None:
    one, two = "https://www.example.com/1", "https://www.example.com/2"
    more = (redirect(one, "/2"), redirect(two, "/1", initiator=one, how="redirect"))
    assert verify_archive(write(tmp_path / "round", *more)) == [f"{one}: redirects in a circle"]


def test_a_redirect_to_itself_that_ends_is_none(tmp_path: Path) -> None:
    url = "https://www.example.com/1"
    end = make_exchange(url, b"a", initiator=url, how="redirect")
    folder = write(tmp_path / "bounce", redirect(url, url), end)
    assert verify_archive(folder) == []
    assert count_repeats(read_archive(folder)) == 1


def test_requests_that_differ_are_no_repeats(page: Path, tmp_path: Path) -> None:
    assert count_repeats(read_archive(page)) == 0
    post = make_exchange(ROOT_URL, b"a", method="POST", request_body_size=3)
    folder = write(tmp_path / "post", post, replace(post, request_body_size=4))
    assert count_repeats(read_archive(folder)) == 0


def test_certificates(page: Path, tmp_path: Path) -> None:
    built = build_page(page, tmp_path / "cache")
    assert verify_archive(built) + verify_tls(built) == []
    (built / "tls" / "key.pem").write_text("another")
    (built / "tls" / "www.example.com.pem").rename(built / "tls" / "x.pem")
    assert verify_tls(built) == [
        "tls/key.pem: not what the lab's authority makes",
        "tls/www.example.com.pem: is missing",
        "tls/x.pem: of no https host of the page",
    ]


ROWS = (
    "0,,a.example,text/html,200,1480,1000,root,,0,100\n"
    "1,0,a.example,text/css,200,980,2000,url-in-main-html,-90,10,5\n"
    "2,0,a.example,image/gif,302,480,,url-in-main-html,-90,10,5\n"
    "3,2,b.example,image/gif,200,523,43,redirect,-90,10,5\n"
)


@pytest.fixture
def table(small: Small, tmp_path: Path) -> Path:
    built = build_page(small(ROWS), tmp_path / "cache")
    assert verify_table(built) == []
    return built


@pytest.mark.parametrize("name", NAMES)
def test_committed_pages_verify(cache: Path, name: str) -> None:
    assert verify_table(build_page(PAGES / name, cache)) == []


def test_a_changed_body_of_a_table(table: Path) -> None:
    body = body_of(table, 3)
    body.write_bytes(body.read_bytes()[:-1] + b"!")
    assert verify_table(table) == [
        "http://b.example.p.test/3.gif: the body is not what its hash says"
    ]


def test_a_body_of_a_table_that_is_gone(table: Path) -> None:
    body_of(table, 0).unlink()
    problems = verify_table(table)
    assert "No such file" in problems[0]
    assert any("1.css: named 0 times" in problem for problem in problems)


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        (1, lambda e: e["response"].update(headersSize=9), "9 header bytes, at least 330"),
        (1, lambda e: e["response"].update(headersSize=-1), "the size of its response head is not"),
        (1, lambda e: e["request"].update(url="http://x.p.test/1.css"), "not in the archive"),
        (3, lambda e: e["request"].update(url="http://a.example.p.test/2.gif"), "2 entries"),
        (3, lambda e: e.update(_how="script"), "named 0 times"),
        (2, lambda e: e["response"].update(redirectURL="", headers=[]), "does not go with"),
        (1, lambda e: e.update(_carrier="http://b.example.p.test/3.gif"), "which belongs to"),
    ],
)
def test_a_har_that_does_not_fit_a_table(
    table: Path, index: int, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit_entry(table, index, change)
    assert message in "\n".join(verify_table(table))
