"""Each way in which a page that was built from a table can be broken is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.archive.reading import read_archive
from testbed.pages.build import build_page
from wings.pages.tests.conftest import NAMES, PAGES
from wings.pages.verify import verify_table

ROWS = (
    "0,,a.example,text/html,200,1480,1000,root,,0,100\n"
    "1,0,a.example,text/css,200,980,2000,url-in-main-html,-90,10,5\n"
    "2,0,a.example,image/gif,302,480,,url-in-main-html,-90,10,5\n"
    "3,2,b.example,image/gif,200,523,43,redirect,-90,10,5\n"
)


@pytest.fixture
def page(small: Callable[[str], Path], tmp_path: Path) -> Path:
    built = build_page(small(ROWS), tmp_path / "cache")
    assert verify_table(built) == []
    return built


def edit(page: Path, index: int, change: Callable[[dict[str, Any]], object]) -> str:
    """Change an entry of the HAR; return all problems that are then found."""
    path = page / "page.har"
    har = json.loads(path.read_text())
    change(har["log"]["entries"][index])
    path.write_text(json.dumps(har))
    return "\n".join(verify_table(page))


@pytest.mark.parametrize("name", NAMES)
def test_committed_pages_verify(cache: Path, name: str) -> None:
    assert verify_table(build_page(PAGES / name, cache)) == []


def test_a_changed_body(page: Path) -> None:
    body = read_archive(page).entries[3].body
    assert body is not None
    body.write_bytes(body.read_bytes()[:-1] + b"!")
    assert verify_table(page) == [
        "http://b.example.p.test/3.gif: the body is not what its hash says"
    ]


def test_a_body_that_is_gone(page: Path) -> None:
    body = read_archive(page).entries[0].body
    assert body is not None
    body.unlink()
    problems = verify_table(page)
    assert "No such file" in problems[0]
    assert any("1.css: named 0 times" in problem for problem in problems)


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        (1, lambda e: e["response"].update(headersSize=9), "9 header bytes, at least 330"),
        (
            1,
            lambda e: e["response"].update(headersSize=-1),
            "the size of its response head is not known",
        ),
        (1, lambda e: e["request"].update(url="http://x.p.test/1.css"), "not in the archive"),
        (3, lambda e: e["request"].update(url="http://a.example.p.test/2.gif"), "2 entries"),
        (3, lambda e: e.update(_how="script"), "named 0 times"),
        (2, lambda e: e["response"].update(redirectURL="", headers=[]), "does not go with"),
        (1, lambda e: e.update(_carrier="http://b.example.p.test/3.gif"), "which belongs to"),
    ],
)
def test_a_har_that_does_not_fit(
    page: Path, index: int, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert message in edit(page, index, change)
