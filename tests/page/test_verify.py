"""Each way in which a built page can be broken is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import ConfigurationError
from testbed.page.archive import read_archive
from testbed.page.build import build_page
from testbed.page.verify import verify_archive

ROWS = (
    "0,,a.example,text/html,200,1480,1000,root,,0,100\n"
    "1,0,a.example,text/css,200,980,2000,url-in-main-html,-90,10,5\n"
    "2,0,a.example,image/gif,302,480,,url-in-main-html,-90,10,5\n"
    "3,2,b.example,image/gif,200,523,43,redirect,-90,10,5\n"
)


@pytest.fixture
def page(small: Callable[[str], Path], tmp_path: Path) -> Path:
    built = build_page(small(ROWS), tmp_path / "cache")
    assert verify_archive(built) == []
    return built


def edit(page: Path, index: int, change: Callable[[dict[str, Any]], object]) -> str:
    """Change an entry of the HAR; return all problems that are then found."""
    path = page / "page.har"
    har = json.loads(path.read_text())
    change(har["log"]["entries"][index])
    path.write_text(json.dumps(har))
    return "\n".join(verify_archive(page))


def test_a_changed_body(page: Path) -> None:
    body = read_archive(page).entries[3].body
    assert body is not None
    body.write_bytes(body.read_bytes()[:-1] + b"!")
    assert verify_archive(page) == [
        "http://b.example.p.test/3.gif: the body is not what its hash says"
    ]


def test_a_body_that_is_gone(page: Path) -> None:
    body = read_archive(page).entries[3].body
    assert body is not None
    body.unlink()
    assert "No such file" in verify_archive(page)[0]


def test_a_stray_body(page: Path) -> None:
    (page / "bodies" / "stray").touch()
    assert verify_archive(page) == ["stray: a body that no entry uses"]


def test_broken_gzip(page: Path) -> None:
    body = read_archive(page).entries[1].body
    assert body is not None
    body.write_bytes(bytes(len(body.read_bytes())))
    assert any("not gzip" in problem for problem in verify_archive(page))


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        (1, lambda e: e["response"].update(bodySize=3), "recorded 3"),
        (1, lambda e: e["response"]["content"].update(size=3), "decodes to 2000, recorded 3"),
        (1, lambda e: e["response"].update(headersSize=9), "9 header bytes"),
        (1, lambda e: e.update(_body=None), "no body, but sizes are not 0"),
        (1, lambda e: e.update(_carrier=None), "nothing names it"),
        (1, lambda e: e.update(_carrier="http://x.p.test/"), "is not in the archive"),
        (1, lambda e: e["request"].update(url="http://x.p.test/1.css"), "not in the archive"),
        (3, lambda e: e["request"].update(url="http://x.p.test/3.gif"), "redirects to"),
        (3, lambda e: e["request"].update(url="http://a.example.p.test/2.gif"), "2 entries"),
        (3, lambda e: e.update(_how="script"), "named 0 times"),
        (2, lambda e: e["response"].update(redirectURL=""), "does not go with Location"),
        (2, lambda e: e["response"].update(headers=[]), "is not the Location header"),
    ],
)
def test_a_har_that_does_not_fit(
    page: Path, index: int, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert message in edit(page, index, change)


def test_no_archive_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"pages build NAME"):
        verify_archive(tmp_path)
    (tmp_path / "page.har").write_text('{"log": {"pages": [], "entries": []}}')
    with pytest.raises(ConfigurationError, match="not a page archive"):
        read_archive(tmp_path)
    (tmp_path / "page.har").write_text('{"log": {"pages": [{"id": "a"}], "entries": []}}')
    with pytest.raises(ConfigurationError, match="no entries"):
        read_archive(tmp_path)


def test_an_archive_is_http_only(page: Path) -> None:
    with pytest.raises(ConfigurationError, match="only http is served"):
        edit(page, 1, lambda entry: entry["request"].update(url="https://a.example/1.css"))
