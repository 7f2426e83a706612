"""Archives become built pages as they are, with certificates, and with nothing from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.archive.reading import read_archive
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from testbed.pages.catalogue import list_pages, name_page, read_kind
from wings.pages.har_export import write_archive
from wings.pages.tests.conftest import FACTS, Small
from wings.pages.tests.recordings import PIXEL, ROOT_URL, body_of, make_exchange, make_recording
from wings.pages.verify import verify_archive, verify_tls

ROWS = "0,,a.example,text/html,200,1480,4000,root,,0,100\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_archive(tmp_path / "mine", make_recording(), licence="none")
    return tmp_path / "mine"


def test_the_built_page_is_the_archive_with_certificates(page: Path, tmp_path: Path) -> None:
    built = build_page(page, tmp_path / "cache")
    assert read_archive(built).digest == read_archive(page).digest
    assert verify_archive(built) + verify_tls(built) == []
    assert {path.name for path in (built / "tls").iterdir()} == {
        "authority.pem", "authority.spki", "key.pem", "www.example.com.pem"
    }  # fmt: skip
    assert all(path.stat().st_mode & 0o044 for path in built.rglob("*"))


def test_the_second_build_is_the_first_until_something_changes(page: Path, tmp_path: Path) -> None:
    first = build_page(page, tmp_path / "cache")
    assert build_page(page, tmp_path / "cache") == first
    write_archive(page, make_recording(title="Another"), licence="none", replace=True)
    assert build_page(page, tmp_path / "cache") != first


def test_an_edit_of_the_page_does_not_reach_what_was_built(page: Path, tmp_path: Path) -> None:
    built = build_page(page, tmp_path / "cache")
    with body_of(page, 3).open("r+b") as file:
        file.write(b"XXX")
    assert body_of(built, 3).read_bytes() == PIXEL


def test_a_page_without_tls_has_no_certificates(small: Small, tmp_path: Path) -> None:
    assert not (build_page(small(ROWS), tmp_path / "cache") / "tls").exists()


@pytest.mark.parametrize("kind", ["changed", "longer", "gone", "link", "pipe", "folder"])
def test_a_body_that_is_not_what_its_hash_says(page: Path, tmp_path: Path, kind: str) -> None:
    body = body_of(page, 3)
    if kind == "changed":
        body.write_bytes(PIXEL[:-1] + b"!")
    elif kind == "longer":
        body.write_bytes(PIXEL + b"!")
    else:
        body.rename(tmp_path / "elsewhere")
    if kind == "link":
        body.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(body)
    elif kind == "folder":
        body.mkdir()
    with pytest.raises(ConfigurationError, match=body.name):
        build_page(page, tmp_path / "cache")
    assert list((tmp_path / "cache" / "pages").iterdir()) == []


@pytest.mark.parametrize("name", ["page.har", "page.toml", "bodies"])
def test_links_out_of_the_page(page: Path, tmp_path: Path, name: str) -> None:
    (page / name).rename(tmp_path / "elsewhere")
    (page / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match=f"{name}: is a link"):
        build_page(page, tmp_path / "cache")


def test_every_mistake_at_once(page: Path, tmp_path: Path) -> None:
    for index in (0, 1):
        body_of(page, index).unlink()
    with pytest.raises(ConfigurationError) as caught:
        build_page(page, tmp_path / "cache")
    assert len(caught.value.problems) == 2


def test_stray_files_are_not_built(page: Path, tmp_path: Path) -> None:
    (page / "bodies" / "stray").touch()
    assert verify_archive(build_page(page, tmp_path / "cache")) == []


def test_kinds(page: Path, small: Small, tmp_path: Path) -> None:
    table = small(ROWS)
    assert (read_kind(page), read_kind(table)) == ("archive", "table")
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    (recipe / "page.toml").write_text(FACTS + "[recipe]\n")
    assert read_kind(recipe) == "recipe"
    with pytest.raises(ConfigurationError, match=r"recipe\.package"):
        build_page(recipe, tmp_path / "cache")
    (recipe / "resources.csv").touch()
    with pytest.raises(ConfigurationError, match=r"has resources.csv and a \[recipe\]"):
        read_kind(recipe)
    (recipe / "page.toml").write_text(FACTS)
    (recipe / "resources.csv").unlink()
    with pytest.raises(ConfigurationError, match="has nothing to build"):
        read_kind(recipe)


def test_a_page_that_is_being_written_is_none(page: Path, tmp_path: Path) -> None:
    page.rename(tmp_path / ".mine-x7")
    assert list_pages(tmp_path) == ()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", ".a", "-a", "a\n", "a" * 65, "ä"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a page"):
        name_page(tmp_path, name)


def test_a_name_that_is_taken(page: Path, tmp_path: Path) -> None:
    assert name_page(tmp_path, "new") == tmp_path / "new"
    with pytest.raises(ConfigurationError, match="--replace"):
        name_page(tmp_path, "mine")
    assert name_page(tmp_path, "mine", replace=True) == page


def test_many_hosts_have_a_certificate_each(tmp_path: Path) -> None:
    more = [make_exchange(f"https://h{index}.example.com/") for index in range(5)]
    write_archive(tmp_path / "many", make_recording(*more), licence="none")
    built = build_page(tmp_path / "many", tmp_path / "cache")
    assert {path.name for path in (built / "tls").glob("h*.pem")} == {
        f"h{index}.example.com.pem" for index in range(5)
    }
    assert read_archive(built).root_url == ROOT_URL
