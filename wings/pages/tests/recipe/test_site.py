"""One package, several hosts: each reference leads where its file is served, or nowhere."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.recipe.description import Recipe, read_recipe
from wings.pages.recipe.site import Split, make_site, split
from wings.pages.tests.recipe.recipes import FILES, TABLE, write_page

PACKAGE = {n.removeprefix("package/"): d for n, d in FILES.items() if n.startswith("package/")}


def recipe_of(tmp_path: Path, more: str = "", table: str = TABLE) -> Recipe:
    return read_recipe(write_page(tmp_path, table=table + more))


def content(made: Split, path: str) -> str:
    return next(file.data for file in made.files if file.path == path).decode("latin-1")


def test_what_is_referred_to_is_found_and_spread(tmp_path: Path) -> None:
    made = split(recipe_of(tmp_path), PACKAGE)
    assert [file.url for file in made.files] == [
        "//www.small.test/index.html", "//static.small.test/a.css", "//img.small.test/img/1.gif",
        "//www.small.test/a.js", "//www.small.test/f.woff2?v=1", "//img.small.test/img/2.gif",
    ]  # fmt: skip
    assert content(made, "index.html") == (
        '<!doctype html><link rel=stylesheet href="//static.small.test/a.css">'
        '<img src="//img.small.test/img/1.gif"><script src="//www.small.test/a.js"></script>'
    )
    assert 'url("//www.small.test/f.woff2?v=1")' in content(made, "a.css")
    assert made.notes == ()


def test_what_leads_outside_or_nowhere_is_cut_and_told(tmp_path: Path) -> None:
    index = b"<img src=http://x.org/1.png><img src=//x.org/2.png><img src=gone.png><img src='#'>"
    made = split(recipe_of(tmp_path), {"index.html": index})
    assert b"data-outside-src=http://x.org/1.png" in made.files[0].data
    assert made.notes == (
        "index.html: http://x.org/1.png is outside; cut",
        "index.html: //x.org/2.png is outside; cut",
        "index.html: gone.png is not in the package; cut",
    )


def test_references_in_folders_and_odd_names(tmp_path: Path) -> None:
    package = {
        "index.html": '<link rel=stylesheet href="css/a.css#x"><img src="img/a%20b.gif">'
        '<img src="/img/é.gif">'.encode(),
        "css/a.css": b"a{b:url(../img/c.gif)} d{e:url(../../img/c.gif)}",
        "img/a b.gif": b"1",
        "img/\u00e9.gif": b"2",
        "img/c.gif": b"3",
    }
    made = split(recipe_of(tmp_path), package)
    assert [file.url for file in made.files][1:] == [
        "//static.small.test/css/a.css", "//img.small.test/img/a%20b.gif",
        "//img.small.test/img/%C3%A9.gif", "//img.small.test/img/c.gif",
    ]  # fmt: skip
    assert 'href="//static.small.test/css/a.css#x"' in content(made, "index.html")


def test_what_only_scripts_ask_for_is_served_by_the_main_host(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, table=TABLE.replace("protocol", 'also = ["img/2.gif"]\nprotocol'))
    urls = [file.url for file in split(recipe, PACKAGE).files]
    assert "//www.small.test/img/2.gif" in urls
    assert "//img.small.test/img/2.gif" in urls


def test_edits_are_made_before_anything_else(tmp_path: Path) -> None:
    edit = 'edits = [{{ file = "index.html", old = "img/1.gif", new = "img/2.gif" }}]\nprotocol'
    made = split(recipe_of(tmp_path, table=TABLE.replace("protocol", edit)), PACKAGE)
    assert "//img.small.test/img/1.gif" not in [file.url for file in made.files]


def test_a_recipe_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    edit = 'edits = [{{ file = "a.js", old = "no", new = "" }}]\nprotocol'
    table = TABLE.replace("index.html", "home.html").replace("protocol", edit)
    folder = write_page(tmp_path, table=table)
    facts = folder / "page.toml"
    facts.write_text(facts.read_text().replace("test/index.html", "test/home.html"))
    with pytest.raises(ConfigurationError) as caught:
        split(read_recipe(folder), PACKAGE)
    assert caught.value.problems == [
        "small: recipe.index: the package has no file 'home.html'",
        "small: recipe.edits: a.js holds 'no' 0 times, expected once",
    ]
    with pytest.raises(ConfigurationError, match=r"recipe\.also: the package has no file 'x'"):
        split(recipe_of(tmp_path / "b", table=TABLE.replace("protocol", 'also=["x"]\nprotocol')),
              PACKAGE)  # fmt: skip


def test_a_site_answers_as_a_server_would(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path)
    package = PACKAGE | {"a.js": b"x" * 1000}
    site = make_site(recipe, split(recipe, package), "a test")
    assert site.url == "http://www.small.test/index.html" == site.exchanges[0].url
    by_url = {exchange.url: exchange for exchange in site.exchanges}
    script = by_url["http://www.small.test/a.js"]
    assert ("Content-Encoding", "gzip") in script.headers
    assert gzip.decompress(script.body or b"") == b"x" * 1000
    assert (script.body_size, script.decoded_size) == (len(script.body or b""), 1000)
    picture = by_url["http://img.small.test/img/1.gif"]
    assert picture.body == b"GIF89a1"
    assert picture.headers == (
        ("Content-Type", "image/gif"),
        ("Cache-Control", "public, max-age=604800"),
        ("Access-Control-Allow-Origin", "*"),
    )
