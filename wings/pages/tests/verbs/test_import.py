"""The verb ``pages import``: what it prints, writes, and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from testbed.archive.reading import read_archive
from testbed.base import places
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from testbed.pages.catalogue import read_facts
from wings.pages.coding import decode
from wings.pages.tests.importing.site import ROOT, SITE, devtools, webpagetest
from wings.pages.verbs.import_page import import_command
from wings.pages.verify import verify_archive


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    monkeypatch.setattr(places, "PAGES", folder)
    return folder


@pytest.fixture
def har(tmp_path: Path) -> Path:
    document = webpagetest()
    cookie = {"name": "Set-Cookie", "value": "session=0123456789abcdef; Path=/"}
    document["log"]["entries"][1]["response"]["headers"].append(cookie)
    path = tmp_path / "load.har"
    path.write_text(json.dumps(document))
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(import_command, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == 0
    return result.output


def test_it_says_what_was_written_and_what_to_do_next(pages: Path, har: Path) -> None:
    said = run(str(har), "--name", "mine", "--title", "My page", "--licence", "Mine.")
    assert said.startswith(f"mine: {len(SITE)} requests to 2 hosts, ")
    assert "./run.sh pages verify mine" in said and "./run.sh serve mine" in said
    assert verify_archive(pages / "mine") == []
    facts = read_facts(pages / "mine" / "page.toml")
    assert (facts.title, facts.licence) == ("My page", "Mine.")


def test_secrets_go_unless_they_are_kept(pages: Path, har: Path) -> None:
    run(str(har), "--name", "clean")
    run(str(har), "--name", "kept", "--keep-secrets")
    assert "0123456789abcdef" not in (pages / "clean" / "page.har").read_text()
    assert "0123456789abcdef" in (pages / "kept" / "page.har").read_text()


def test_anonymized_pages_are_tables(pages: Path, har: Path) -> None:
    assert "as table in" in run(str(har), "--name", "numbers", "--anonymize")
    names = sorted(path.name for path in (pages / "numbers").iterdir())
    assert names == ["page.toml", "resources.csv"]


def test_every_note_is_told(pages: Path, tmp_path: Path) -> None:
    document = devtools()
    document["log"]["entries"][2]["request"]["url"] = "file:///etc/\x1b[2Jpasswd"
    path = tmp_path / "x.har"
    path.write_text(json.dumps(document))
    said = run(str(path), "--name", "x", "--url", ROOT)
    assert "Requests left out, file: URLs: 1 (file:///etc/\\x1b[2Jpasswd)." in said
    archive = read_archive(pages / "x")
    assert archive.root_url == ROOT


def test_a_page_is_replaced_only_when_asked_to(pages: Path, har: Path) -> None:
    run(str(har), "--name", "mine")
    with pytest.raises(ConfigurationError, match="--replace"):
        run(str(har), "--name", "mine")
    run(str(har), "--name", "mine", "--replace", "--title", "Second")
    assert read_facts(pages / "mine" / "page.toml").title == "Second"


@pytest.mark.parametrize("name", ("../out", "a/b", "", ".hidden"))
def test_a_name_is_no_path(name: str, pages: Path, har: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a page"):
        run(str(har), "--name", name)


def test_after_an_error_nothing_is_written(pages: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_text(json.dumps(devtools())[:-40])
    with pytest.raises(ConfigurationError, match="ends too early"):
        run(str(path), "--name", "x")
    with pytest.raises(ConfigurationError, match="no such file"):
        run(str(tmp_path / "none.har"), "--name", "x")
    assert list(pages.iterdir()) == []


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize(
    "cookie",
    ["landing=https%3A%2F%2Fwww.site.example%2F", "ref=https://www.site.example/",
     "host=cdn.site.example", "last=text/html; s=https; j=javascript", "p=/style.css",
     "q=<script src='a.js'></script>", "t=application/x-javascript1"],
)  # fmt: skip
def test_a_cookie_of_the_page_itself_renames_nothing(
    cookie: str, anonymize: bool, pages: Path, har: Path
) -> None:
    document = json.loads(har.read_text())
    for entry in document["log"]["entries"]:
        entry["request"]["headers"].append({"name": "Cookie", "value": cookie})
        entry["response"]["headers"].append({"name": "Set-Cookie", "value": cookie})
    har.write_text(json.dumps(document))
    run(str(har), "--name", "mine", *(["--anonymize"] if anonymize else []))
    archive = read_archive(build_page(pages / "mine", pages.parent / "cache"))
    if anonymize:
        hosts = {entry.host for entry in archive.entries}
        assert hosts == {"www.site.example.p.test", "cdn.site.example.p.test"}
    else:
        assert verify_archive(pages / "mine") == []
        assert [entry.url for entry in archive.entries] == [sent.url for sent in SITE]
        root = archive.entries[1].body
        assert root is not None
        assert decode(root.read_bytes(), "gzip", 1 << 20) == SITE[1].content


def test_a_har_without_a_document_names_itself_and_the_remedy(pages: Path, har: Path) -> None:
    har.write_text(json.dumps(webpagetest((SITE[5], SITE[1]), bodies=False)))
    with pytest.raises(ConfigurationError) as caught:
        run(str(har), "--name", "mine", "--url", SITE[5].url)
    assert str(caught.value).startswith(f"{har}: {SITE[5].url}: the page itself is not text/html")
    assert f"--url {ROOT}" in str(caught.value)
    assert list(pages.iterdir()) == []
