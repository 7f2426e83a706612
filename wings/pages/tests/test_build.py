"""Built folders: whole or not there, cached by what they come from, the same everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from testbed.archive.reading import read_archive
from testbed.base.checksums import CHECKSUMS_FILE
from testbed.base.errors import ConfigurationError, MissingError, StorageError
from testbed.base.proc import run
from testbed.pages import build
from testbed.pages.build import build_page
from testbed.pages.catalogue import find_page, list_pages, read_facts
from tests.copies import copy_code
from wings.pages.tests.conftest import FACTS, NAMES, PAGES, Small

ROWS = (
    "0,,a.example,text/html,200,1480,4000,root,,0,100\n"
    "1,0,a.example,image/png,200,980,500,url-in-main-html,-90,10,5\n"
)


def test_the_second_build_is_the_first(small: Small, tmp_path: Path) -> None:
    folder, cache = small(ROWS), tmp_path / "cache"
    first = build_page(folder, cache)
    stamp = (first / "page.har").stat().st_mtime_ns
    assert build_page(folder, cache) == first
    assert (first / "page.har").stat().st_mtime_ns == stamp
    assert list((cache / "pages").iterdir()) == [first]


@pytest.mark.parametrize("damage", ["cut", "same length", "gone", "one more", "list gone"])
def test_a_damaged_build_is_built_again(
    small: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    caplog.set_level("INFO", "testbed")
    folder, cache = small(ROWS), tmp_path / "cache"
    built = build_page(folder, cache)
    before = contents(built)
    body = next(iter(sorted((built / "bodies").iterdir())))
    if damage == "cut":
        body.write_bytes(body.read_bytes()[:-1])
    elif damage == "same length":
        body.write_bytes(bytes(body.stat().st_size))
    elif damage == "one more":
        (built / "bodies" / "stray").touch()
    else:
        (body if damage == "gone" else built / CHECKSUMS_FILE).unlink()
    assert build_page(folder, cache) == built
    assert contents(built) == before
    assert list((cache / "pages").iterdir()) == [built]
    (said,) = caplog.messages
    assert said.startswith("small: ") and said.endswith("is damaged; building it again")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_checksums_are_those_of_sha256sum(small: Small, tmp_path: Path) -> None:
    built = build_page(small(ROWS), tmp_path / "cache")
    assert run(["sha256sum", "--check", "--strict", CHECKSUMS_FILE], cwd=built).returncode == 0


def test_a_damaged_build_that_cannot_be_replaced_is_told(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = small(ROWS), tmp_path / "cache"
    built = build_page(folder, cache)
    (built / "page.har").write_text("{")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "write_checksums", full)
    with pytest.raises(StorageError, match="No space left"):
        build_page(folder, cache)
    assert (built / "page.har").read_text() == "{"


def test_another_table_is_another_build(small: Small, tmp_path: Path) -> None:
    first = build_page(small(ROWS), tmp_path)
    second = build_page(small(ROWS.replace("980", "981")), tmp_path)
    assert first != second
    assert read_archive(first).digest != read_archive(second).digest


def test_other_code_is_another_build(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_page(small(ROWS), tmp_path)
    code = copy_code(tmp_path / "tree", monkeypatch)
    with (code.parent / "wings" / "pages" / "synthesis" / "filler.py").open("a") as module:
        module.write("# other code\n")
    second = build_page(small(ROWS), tmp_path)
    assert first != second
    assert read_archive(first).digest == read_archive(second).digest


def test_a_rival_that_was_first_is_no_error(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = small(ROWS), tmp_path / "cache"
    rename = Path.rename

    def lose(ours: Path, target: Path) -> Path:
        target.mkdir()
        (target / "rival").touch()
        return rename(ours, target)

    monkeypatch.setattr(Path, "rename", lose)
    target = build_page(folder, cache)
    assert [path.name for path in target.iterdir()] == ["rival"]
    assert list((cache / "pages").iterdir()) == [target]


def test_a_cache_that_cannot_be_written_is_told(small: Small, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot write the page small to .*/file"):
        build_page(small(ROWS), tmp_path / "file")


def test_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from testbed.pages.build import build_page\n"
        "for name in sys.argv[2:]: build_page(Path(name), Path(sys.argv[1]))\n"
    )
    pages = [str(PAGES / name) for name in ("wikipedia", "wsj")]
    digests = set()
    for seed in ("0", "1", "77"):
        run([sys.executable, "-c", program, str(tmp_path / seed), *pages], cwd=PAGES.parent,
            env={**os.environ, "PYTHONHASHSEED": seed})  # fmt: skip
        built = sorted((tmp_path / seed / "pages").iterdir())
        digests.add(tuple(read_archive(path).digest for path in built))
    assert len(digests) == 1


def test_a_build_outlives_its_builder(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = small(ROWS), tmp_path / "cache"
    built = build_page(folder, cache)
    monkeypatch.setattr(build, "provided", lambda _point: iter(()))
    assert build_page(folder, cache) == built
    (built / "page.har").write_text("{")
    with pytest.raises(MissingError, match=r"nothing here builds a table, .* put wings/pages back"):
        build_page(folder, cache)


def test_a_build_of_other_files_is_not_taken(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_page(small(ROWS), tmp_path / "cache")
    monkeypatch.setattr(build, "provided", lambda _point: iter(()))
    with pytest.raises(MissingError, match="nothing here builds a table"):
        build_page(small(ROWS.replace("980", "981")), tmp_path / "cache")


def test_the_har_has_what_the_format_asks_for(small: Small, tmp_path: Path) -> None:
    log = json.loads((build_page(small(ROWS), tmp_path) / "page.har").read_text())["log"]
    assert log["version"] == "1.2"
    for entry in log["entries"]:
        assert entry["time"] == sum(entry["timings"].values())
        assert {"startedDateTime", "request", "response", "cache", "timings"} <= entry.keys()
        assert {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize",
                "bodySize"} == entry["request"].keys()  # fmt: skip
        assert {"status", "statusText", "httpVersion", "cookies", "headers", "content",
                "redirectURL", "headersSize", "bodySize"} <= entry["response"].keys()  # fmt: skip
    assert log["entries"][1]["startedDateTime"] == "2013-03-13T00:00:00.010Z"


def test_the_digest_covers_the_bodies(small: Small, tmp_path: Path) -> None:
    archive = read_archive(build_page(small(ROWS), tmp_path))
    for entry in archive.entries:
        assert entry.body is not None
        assert hashlib.sha256(entry.body.read_bytes()).hexdigest() == entry.body.name


def test_pages_are_found_by_name() -> None:
    assert set(NAMES) < {folder.name for folder in list_pages(PAGES)}
    assert find_page(PAGES, "wsj") == PAGES / "wsj"
    with pytest.raises(ConfigurationError, match="no page 'wikipeda'; did you mean 'wikipedia'"):
        find_page(PAGES, "wikipeda")
    known = "no page 'x'; the pages are admin-lte, admin-lte-h2, agency,"
    with pytest.raises(ConfigurationError, match=known):
        find_page(PAGES, "x")


def test_facts_are_checked_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "page.toml"
    path.write_text(FACTS.replace('"made up"', "3").replace("licence", "license"))
    with pytest.raises(ConfigurationError) as caught:
        read_facts(path)
    assert len(caught.value.problems) == 3
    path.write_text("title = \n")
    with pytest.raises(ConfigurationError, match=r"page\.toml: cannot be read"):
        read_facts(path)


@pytest.mark.parametrize("name", NAMES)
def test_committed_facts_say_when_and_whence(name: str) -> None:
    facts = read_facts(PAGES / name / "page.toml")
    assert facts.url.startswith("http://")
    assert facts.deviations
    assert ("fit2011" in name) == ("proves nothing" in facts.deviations[0])


def test_a_page_may_have_the_table_of_another(tmp_path: Path, small: Small) -> None:
    base = small("0,,a.example,text/html,200,980,500,root,,0,9\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "page.toml").write_text(FACTS + '[table]\nlike = "small"\nprotocol = "h2"\n')
    (entry,) = read_archive(build_page(other, tmp_path / "cache")).entries
    assert (entry.scheme, entry.protocol, entry.body_size) == ("https", "h2", 500)
    built = build_page(other, tmp_path / "cache")
    table = base / "resources.csv"
    table.write_text(table.read_text().replace(",980,500,", ",981,501,"))
    assert build_page(other, tmp_path / "cache") != built


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('like = "none"\nprotocol = "h2"', r"there is no page 'none' with a resources\.csv"),
        ('protocol = "h2"', "there is no page None"),
        ('like = "small"\nprotocol = "h9"', "table.protocol is 'h9', expected one of http, https"),
        ('like = "small"\nprotocol = "h2"\nrows = 1', "table.rows: unknown; it has like and prot"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(
    tmp_path: Path, small: Small, table: str, message: str
) -> None:
    small("0,,a.example,text/html,200,980,500,root,,0,9\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "page.toml").write_text(f"{FACTS}[table]\n{table}\n")
    with pytest.raises(ConfigurationError, match=message):
        build_page(other, tmp_path / "cache")
