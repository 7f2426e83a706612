"""Recipes as people write them: every mistake at once, with its place and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.pages.recipe.description import read_recipe
from wings.pages.tests.recipe.recipes import NO_INTEGRITY, TABLE, write_page


def complaints(folder: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read_recipe(folder)
    return [problem.replace(str(folder), "") for problem in caught.value.problems]


def test_a_recipe_is_read(tmp_path: Path) -> None:
    recipe = read_recipe(write_page(tmp_path))
    assert (recipe.name, recipe.package, recipe.checksum) == ("small", "small", NO_INTEGRITY)
    assert [rule.host for rule in recipe.hosts] == ["img.small.test", "static.small.test"]
    assert (recipe.scheme, recipe.http, recipe.when_gone) == ("http", "http/1.1", "refuse")


def test_a_page_can_be_like_another(tmp_path: Path) -> None:
    plain = read_recipe(write_page(tmp_path))
    like = write_page(tmp_path, "small-h2", '[recipe]\nlike = "small"\nprotocol = "h2"\n')
    recipe = read_recipe(like)
    assert (recipe.scheme, recipe.http, recipe.hosts) == ("https", "h2", plain.hosts)
    assert recipe.digest != plain.digest


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    table = (
        TABLE.replace('"npm"', '"pip"')
        .replace('host = "img.small.test"', 'host = "img.example.org"')
        .replace('root = "package"', 'root = "../package"')
        .replace("index =", "indx =")
    )
    assert complaints(write_page(tmp_path, table=table)) == [
        "/page.toml:9: recipe.registry: 'pip' is not 'npm' or 'debian'",
        "/page.toml:13: recipe.root: '../package' is not a plain relative path; write it without "
        "'..' and '//'",
        "/page.toml:8: recipe.index: missing",
        "/page.toml:16: recipe.hosts[0].host: 'img.example.org' is not a host name in lower case "
        "that ends in .test, as RFC 6761 reserves it",
        "/page.toml:14: recipe.indx: no such key (did you mean 'index'?); allowed: registry, "
        "package, version, integrity, sha256, suite, when_gone, root, index, main, hosts, also, "
        "parts, own, edits, protocol",
    ]


def test_a_registry_has_its_own_checksum(tmp_path: Path) -> None:
    (told,) = complaints(write_page(tmp_path, table=TABLE.replace('"npm"', '"debian"')))
    assert "sha256 is missing; the SHA256 that `apt-cache show PACKAGE=VERSION` says" in told
    assert "suite is missing; a suite of Debian, as 'bookworm'" in told
    assert "integrity is not for debian; remove it" in told


PART = """
[[recipe.parts]]
package = "@third/party"
version = "2.0.0"
integrity = "{integrity}"
root = "package/dist"
at = "third"
"""


def test_a_page_may_have_parts_hosts_of_other_sites_and_files_of_its_own(tmp_path: Path) -> None:
    table = TABLE.replace('"img/*", host = "img.small.test"', '"third/*", host = "cdn.third.test"')
    own = table.replace("protocol =", 'own = ["index.html"]\nprotocol =')
    folder = write_page(tmp_path, table=own + PART)
    (folder / "index.html").write_text("<!doctype html>")
    recipe = read_recipe(folder)
    further = recipe.of_part(recipe.parts[0])
    assert (further.package, further.root, further.registry) == (
        "@third/party", "package/dist", "npm")  # fmt: skip
    assert recipe.own_files == {"index.html": "<!doctype html>"}
    like = write_page(tmp_path, "small-h2", '[recipe]\nlike = "small"\nprotocol = "h2"\n')
    assert read_recipe(like).own_files == recipe.own_files
    (folder / "index.html").write_text("<!doctype html><title>other</title>")
    assert read_recipe(folder).digest != recipe.digest


def test_a_file_of_its_own_that_is_not_there_is_named(tmp_path: Path) -> None:
    table = TABLE.replace("protocol =", 'own = ["app.js"]\nprotocol =')
    (told,) = complaints(write_page(tmp_path, table=table))
    assert told.startswith("/page.toml: recipe.own: app.js cannot be read as a text: ")


def test_the_address_is_what_the_recipe_makes(tmp_path: Path) -> None:
    folder = write_page(tmp_path, table=TABLE.replace("www.small.test", "web.small.test"))
    (told,) = complaints(folder)
    assert "the recipe makes 'http://web.small.test/index.html'" in told


def test_like_needs_a_whole_recipe(tmp_path: Path) -> None:
    alone = write_page(tmp_path, "alone", '[recipe]\nlike = "nobody"\nprotocol = "h2"\n')
    (told,) = complaints(alone)
    assert "recipe.like: there is no page 'nobody' beside this one" in told
    chained = write_page(tmp_path, "chained", '[recipe]\nlike = "alone"\nprotocol = "h2"\n')
    (told,) = complaints(chained)
    assert "the page 'alone' has no whole recipe itself" in told
