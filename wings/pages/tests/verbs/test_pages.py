"""The verb ``pages`` on pages of every kind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.words import MISSING
from firstflight.cli.main import main
from testbed.archive.reading import read_archive
from testbed.base import places
from testbed.model import PageCoverage, Replay
from tests.hallway import make_services
from wings.pages.har_export import write_archive
from wings.pages.replaying import Replayed
from wings.pages.tests.conftest import FACTS, HEADER
from wings.pages.tests.recordings import ROOT_URL, make_exchange, make_recording
from wings.pages.verbs import pages as cli_pages

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, an archive and a recipe."""
    root = tmp_path / "pages"
    monkeypatch.setattr(places, "PAGES", root)
    for name in ("recipe", "table"):
        (root / name).mkdir(parents=True)
    (root / "table" / "page.toml").write_text(FACTS)
    (root / "table" / "resources.csv").write_text(
        HEADER + "0,,a.example,text/html,200,1480,4000,root,,0,100\n"
    )
    (root / "recipe" / "page.toml").write_text(FACTS + "[recipe]\n")
    again = replace(make_exchange(ROOT_URL, b"again", mime="text/html"), made_up=True)
    late = make_exchange("https://www.example.com/\x1b[2J", method="POST", after_load=True)
    page = make_recording(again, late, title="A\x1b[31m page", pinned=True)
    write_archive(root / "archive", page, licence="none")
    return tmp_path


def run(base: Path, *arguments: str) -> int:
    return main(["pages", *arguments], make_services(base))


def test_list(base: Path, capsys: Capsys) -> None:
    assert run(base, "list") == 0
    assert capsys.readouterr().out.replace(MISSING, "?").splitlines() == [
        "page     kind     requests  hosts     size  made up  protocols  title",
        "-------  -------  --------  -----  -------  -------  ---------  --------------",
        "archive  archive         6      2    646 B      5 B  h1+h2 TLS  A\ufffd[31m page",
        "recipe   recipe          ?      ?        ?        ?  ?          A <small> page",
        "table    table           1      1  1.4 KiB   1000 B  h1         A <small> page",
        "",
        "./run.sh pages show NAME builds a recipe and lists its requests.",
    ]


def test_list_fits_into_a_terminal(
    base: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    assert run(base, "list") == 0
    heading, *lines = capsys.readouterr().out.splitlines()[:5]
    assert heading.split() == ["page", "requests", "hosts", "size", "title"]
    assert max(map(len, lines)) <= 50


def test_list_as_json(base: Path, capsys: Capsys) -> None:
    assert run(base, "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(page["name"], page["kind"]) for page in found] == [
        ("archive", "archive"), ("recipe", "recipe"), ("table", "table")
    ]  # fmt: skip
    assert found[0]["protocols"] == "h1+h2 TLS"


def test_a_broken_page_does_not_hide_the_others(base: Path, capsys: Capsys) -> None:
    (base / "pages" / "recipe" / "page.toml").write_text("title = 3")
    assert run(base, "list") == 2
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["archive", "table"]
    assert "title is 3" in err


def test_show(base: Path, capsys: Capsys) -> None:
    assert run(base, "show", "archive") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "archive, h1+h2 TLS, pinned"
    assert lines[4] == "made up, never recorded: 1 of 4 bodies, 5 B of 106 B"
    assert lines[5].split() == ["0", "root", "h2", "200", "48", "B", ROOT_URL]
    assert sum("  made up  " in line for line in lines[5:]) == 1
    assert lines[-1].endswith("after load  POST https://www.example.com/�[2J")


def test_show_as_json(base: Path, capsys: Capsys) -> None:
    assert run(base, "show", "archive", "--json") == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["name"], page["requests"], len(page["entries"])) == ("archive", 6, 6)
    root = page["entries"][0]
    assert (root["url"], root["transfer_bytes"]) == (ROOT_URL, 48)
    assert (base / "pages" / "archive" / "bodies" / root["body"]).is_file()
    assert page["entries"][-1]["after_load"]


def test_verify_as_json(base: Path, capsys: Capsys) -> None:
    body = next((base / "pages" / "archive" / "bodies").iterdir())
    body.write_bytes(b"damaged")
    assert run(base, "verify", "--json", "archive", "table") == 1
    archive, table = json.loads(capsys.readouterr().out)
    assert archive["name"] == "archive"
    assert any("not what its hash says" in problem for problem in archive["problems"])
    assert table == {"name": "table", "problems": []}


def test_long_urls_are_cut_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://www.example.com/" + "a" * 100 + "/end.js"
    assert cli_pages._cut(url, 30) == url
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    cut = cli_pages._cut(url, 30)
    assert len(cut) == 70
    assert (cut[:11], cut[-7:]) == ("https://www", "/end.js")
    assert cli_pages._cut(url[:70], 30) == url[:70]


def test_verify(base: Path, capsys: Capsys) -> None:
    assert run(base, "verify", "archive", "table") == 1
    assert capsys.readouterr().out.splitlines() == [
        "archive: 1 problem",
        "  https://www.example.com/�[2J: '/\\x1b[2J' is no path in printable ASCII",
        "table: ok",
    ]
    page = make_recording(make_exchange(ROOT_URL, b"again", mime="text/html"))
    write_archive(base / "pages" / "archive", page, licence="none", replace=True)
    assert run(base, "verify", "archive") == 0
    assert capsys.readouterr().out == "archive: ok (1 request repeats an earlier one)\n"


def test_verify_with_a_replay(base: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Replayed(PageCoverage(4, 200, 3, 150, 0, 0), Replay(3, missed=("GET http://b.test/",)))
    monkeypatch.setattr(cli_pages, "_replayed", lambda *_: made)
    assert run(base, "verify", "--replay", "archive", "table") == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "table: ok",
        "  requests: 3 of 4 asked for, with 75.0 % of their bytes; 0 answered inexactly, "
        "1 not recorded",
        "  scripts and pixels: not recorded; `pages record` keeps them",
    ]
    monkeypatch.setattr(cli_pages, "_replayed", lambda *_: Replayed(failed="no load event"))
    assert run(base, "verify", "--replay", "--json", "table") == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert table["replay"]["failed"] == "no load event"


def test_verify_of_a_page_that_cannot_be_read(base: Path, capsys: Capsys) -> None:
    (base / "pages" / "archive" / "page.har").write_text("{")
    assert run(base, "verify", "archive", "table") == 1
    out = capsys.readouterr().out
    assert "not a page archive" in out
    assert out.endswith("table: ok\n")


def test_build(base: Path, capsys: Capsys) -> None:
    assert run(base, "build", "archive") == 0
    built = Path(capsys.readouterr().out.strip())
    assert built.parent == base / "cache" / "pages"
    assert read_archive(built).tls_hosts == ("www.example.com",)
    assert (built / "tls" / "authority.spki").exists()


def test_export(base: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base)
    assert run(base, "export", "table", "--har") == 0
    assert capsys.readouterr().out == "table.har\n"
    assert run(base, "export", "table", "--har") == 2
    assert "--replace" in capsys.readouterr().err
    assert run(base, "export", "table", "--har", "--replace", "-o", "table.har") == 0
    capsys.readouterr()
    assert run(base, "export", "table", "--har", "-o", "-") == 0
    assert capsys.readouterr().out == (base / "table.har").read_text()
    assert run(base, "export", "table") == 2
