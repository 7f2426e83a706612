from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import ConfigurationError, StorageError
from testbed.results.folder import open_folder
from wings.packs.container import Container
from wings.packs.contents import METADATA_FILE
from wings.packs.packing import WrittenPack, pack_results, unpack_results
from wings.packs.tests.results import (
    copy_lanes,
    copy_pages,
    copy_results,
    forge,
    rewrite,
    rewrite_metadata,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place with results and pages."""
    copy_results(tmp_path / "results")
    copy_pages(tmp_path / "pages")
    return tmp_path


def pack(home: Path, name: str = "pack.zip", results: str = "results") -> WrittenPack:
    return pack_results(home / results, home / name, home / "pages", home / "cache")


def contents(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refusal(home: Path) -> str:
    """Every problem of the pack; nothing of it is there afterwards."""
    before = sorted(home.iterdir())
    with pytest.raises(ConfigurationError) as caught:
        unpack_results(home / "pack.zip", home / "new")
    assert sorted(home.iterdir()) == before
    return "\n".join(caught.value.problems)


def test_what_was_packed_is_unpacked(home: Path) -> None:
    written = pack(home)
    count = unpack_results(home / "pack.zip", home / "deep" / "new")
    found = dict(contents(home / "deep" / "new"))
    assert count == len(written.contents.files) == len(found) - 1
    assert b'"Process Run Crate"' in found.pop(METADATA_FILE)
    pages = {f"pages/{name}": data for name, data in contents(home / "pages").items()}
    assert found == {**contents(home / "results"), **pages}
    assert (written.contents.missing, written.contents.notes) == ({}, ())


def test_equal_results_give_equal_bytes_also_out_of_a_pack(home: Path) -> None:
    first = pack(home)
    for path in (home / "results").rglob("*"):
        os.utime(path, (0, 0))
        path.chmod(0o755)
    assert pack(home, "again.zip").sha256 == first.sha256
    unpack_results(home / "pack.zip", home / "new")
    shutil.rmtree(home / "pages")
    assert pack(home, "third.zip", "new").sha256 == first.sha256


def test_lanes_are_packed_together(home: Path) -> None:
    copy_lanes(home / "lanes")
    written = pack(home, results="lanes")
    assert [lane.folder for lane in written.contents.lanes] == ["6.1", "7.3"]
    unpack_results(home / "pack.zip", home / "new")
    assert contents(home / "lanes").items() <= contents(home / "new").items()


def test_a_page_that_is_gone_is_said(home: Path) -> None:
    shutil.rmtree(home / "pages" / "wikipedia")
    written = pack(home)
    assert list(written.contents.missing) == ["wikipedia"]
    assert "no page 'wikipedia'" in written.contents.missing["wikipedia"]
    unpack_results(home / "pack.zip", home / "new")
    assert "cannot be re-run elsewhere" in (home / "new" / METADATA_FILE).read_text()
    assert not (home / "new" / "pages" / "wikipedia").exists()


def test_a_page_brings_the_one_whose_table_it_has(home: Path) -> None:
    page = home / "pages" / "wikipedia"
    shutil.copytree(page, home / "pages" / "base")
    (page / "resources.csv").unlink()
    with (page / "page.toml").open("a") as facts:
        facts.write('[table]\nlike = "base"\nprotocol = "http"\n')
    written = pack(home)
    assert {"base", "wikipedia"} <= set(written.contents.pages)
    assert written.contents.missing == {}
    unpack_results(home / "pack.zip", home / "new")
    assert (home / "new" / "pages" / "base" / "resources.csv").is_file()


def test_a_page_that_changed_is_said(home: Path) -> None:
    table = home / "pages" / "wikipedia" / "resources.csv"
    table.write_text(table.read_text().replace("text/css", "text/plain", 1))
    facts = home / "pages" / "tum-website" / "page.toml"
    facts.write_text("title = 1")
    # A page without facts that can be read is none; that of the other is built, and is another.
    written = pack(home)
    assert list(written.contents.missing) == ["tum-website"]
    (note,) = written.contents.notes
    assert note.startswith("Page wikipedia is packed as it is now")


def test_a_command_of_ones_own_is_not_brought_along(home: Path) -> None:
    manifest = home / "results" / "manifest.json"
    told = json.loads(manifest.read_text())
    for condition in told["experiment"]["conditions"]:
        condition |= {"client": "command", "command": "curl {url}"}
    manifest.write_text(json.dumps(told))
    assert list(pack(home).contents.missing) == ["command"]


def test_trials_without_a_result_are_said(home: Path) -> None:
    records = home / "results" / "records.jsonl"
    records.write_text(records.read_text().split("\n", 1)[1])
    assert pack(home).contents.notes == ("15 of 16 planned trials have a result.",)


def test_what_does_not_belong_into_a_pack_is_refused_all_of_it(home: Path) -> None:
    (home / "results" / "link").symlink_to("/etc/passwd")
    (home / "results" / "folder").symlink_to("/etc")
    os.mkfifo(home / "results" / "pipe")
    (home / "results" / "new\nline").touch()
    with pytest.raises(ConfigurationError) as caught:
        pack(home)
    said = "\n".join(caught.value.problems)
    for word in ("link is a link", "folder is a link", "pipe is a link or no", "characters other"):
        assert word in said
    assert len(caught.value.problems) == 4
    assert not (home / "pack.zip").exists()


def test_what_is_no_results_folder(home: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a results folder"):
        pack(home, results="pages")
    with pytest.raises(ConfigurationError, match="not a results folder"):
        pack(home, results="missing")


def test_a_file_that_is_there_stays(home: Path) -> None:
    (home / "pack.zip").write_text("mine")
    with pytest.raises(ConfigurationError, match="--replace"):
        pack(home)
    assert (home / "pack.zip").read_text() == "mine"


def test_a_folder_that_is_there_stays(home: Path) -> None:
    pack(home)
    copy_results(home / "new")
    (home / "new" / "mine").touch()
    with pytest.raises(ConfigurationError, match="--replace"):
        unpack_results(home / "pack.zip", home / "new")
    assert (home / "new" / "mine").exists()
    unpack_results(home / "pack.zip", home / "new", replace=True)
    assert not (home / "new" / "mine").exists()


def test_an_empty_folder_and_one_of_lanes_are_replaced(home: Path) -> None:
    pack(home)
    (home / "empty").mkdir()
    copy_lanes(home / "lanes")
    for name in ("empty", "lanes"):
        unpack_results(home / "pack.zip", home / name, replace=True)
        assert (home / name / "records.jsonl").is_file()
        assert not (home / name / "lanes.json").exists()


def test_results_that_a_run_writes_to_are_not_replaced(home: Path) -> None:
    pack(home)
    for name, written in (("results", "results"), ("lanes", "lanes/7.3")):
        if name == "lanes":
            copy_lanes(home / name)
        with open_folder(home / written):
            before = contents(home / name)
            with pytest.raises(StorageError, match=f"another run writes to .*{written}; wait"):
                unpack_results(home / "pack.zip", home / name, replace=True)
            assert contents(home / name) == before
        unpack_results(home / "pack.zip", home / name, replace=True)


@pytest.mark.parametrize(
    "what", ["thesis", "web", "binary", "file", "pipe", "link", "dangling", "file/x", "x" * 300]
)
@pytest.mark.parametrize("replace", [False, True])
def test_nothing_but_results_is_replaced(home: Path, what: str, replace: bool) -> None:
    pack(home)
    for name, text in (("thesis/chapter", b"1"), ("web/manifest.json", b'{"name": "an app"}'),
                       ("binary/manifest.json", b"\xff"), ("file", b"mine")):  # fmt: skip
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(text)
    os.mkfifo(home / "pipe")
    (home / "link").symlink_to("results")
    (home / "dangling").symlink_to("nowhere")
    before = {path: path.lstat().st_ino for path in home.rglob("*")}
    with pytest.raises(ConfigurationError) as caught:
        unpack_results(home / "pack.zip", home / what, replace=replace)
    (problem,) = caught.value.problems
    assert problem.startswith(str(home / what))
    assert problem.endswith("name another folder")
    assert {path: path.lstat().st_ino for path in home.rglob("*")} == before


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (lambda _: b"[]", "schema None"),
        (lambda _: b"\xff", "manifest.json is not JSON"),
        (lambda _: b"[" * 100_000, "manifest.json is not JSON"),
        (lambda told: told["experiment"]["conditions"][0].update(kind="no"), "unknown kind 'no'"),
        (lambda told: told["experiment"]["conditions"][0].update(kind=[]), "unknown kind []"),
        (lambda told: told["experiment"].update(seed="x"), "experiment.seed: "),
        (lambda told: told.update(environment=5), "environment: "),
        (lambda told: told.update(trials=5), "trials: "),
        (lambda told: told.update(schema=99), "schema 99"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_not_unpacked(
    home: Path, manifest: Callable[[Any], bytes | None], problem: str
) -> None:
    path = home / "results" / "manifest.json"
    told = json.loads(path.read_text())
    data = manifest(told) or json.dumps(told).encode()
    pack(home)
    forge(home / "pack.zip", "manifest.json", data)
    said = refusal(home)
    assert problem in said
    assert "pydantic" not in said
    assert "nothing was unpacked; get it again" in said
    assert "pack.zip: manifest.json" in said


def test_digests_that_are_not_right_are_named_all_of_them(home: Path) -> None:
    pack(home)
    wrong = ("trials/0f/load.pcap", "records.jsonl", "pages/wikipedia/page.toml")
    rewrite(home / "pack.zip", lambda name, data: data[::-1] if name in wrong else data)
    said = refusal(home)
    for name in wrong:
        assert f"pack.zip: {name} has another SHA-256" in said
    assert "nothing was unpacked; get it again" in said


def test_a_pack_of_another_format_is_no_damaged_one(home: Path) -> None:
    pack(home)

    def change(entity: dict[str, Any]) -> None:
        if entity["@id"] == "#format":
            entity["value"] = "2"

    rewrite_metadata(home / "pack.zip", change)
    assert refusal(home) == (
        f"{home / 'pack.zip'}: is of format 2, and this version reads 1: use the revision that "
        "wrote it"
    )


@pytest.mark.parametrize("given", ["", "no licence", "http://a b", "ftp://a", "MIT\n", "<x>"])
def test_what_is_no_licence(home: Path, given: str) -> None:
    with pytest.raises(ConfigurationError, match="SPDX identifier"):
        pack_results(home / "results", home / "x", home / "pages", home / "cache", license_=given)
    assert not (home / "x").exists()


def test_no_path_of_this_machine_is_added(home: Path) -> None:
    (home / "pages" / "secret-project").mkdir()
    shutil.copy(home / "pages" / "wikipedia" / "page.toml", home / "pages" / "secret-project")
    shutil.rmtree(home / "pages" / "wikipedia")
    table = home / "pages" / "tum-website" / "resources.csv"
    table.write_text("no table")
    written = pack(home)
    assert list(written.contents.missing) == ["wikipedia"]
    (note,) = written.contents.notes
    assert note.startswith("Page tum-website cannot be built any more: pages/tum-website/")
    unpack_results(home / "pack.zip", home / "new")
    metadata = (home / "new" / METADATA_FILE).read_text()
    assert "pages: no page 'wikipedia'" in metadata
    assert str(home) not in metadata
    assert "secret-project" not in metadata


def test_what_is_no_plain_file_is_not_written_to(home: Path) -> None:
    os.mkfifo(home / "pipe")
    (home / "link").symlink_to("results/manifest.json")
    before = {path: path.lstat().st_ino for path in home.rglob("*")}
    for name in ("pipe", "link", "results"):
        with pytest.raises(ConfigurationError, match="no plain file; choose another name"):
            pack_results(
                home / "results", home / name, home / "pages", home / "cache", replace=True
            )
    assert {path: path.lstat().st_ino for path in home.rglob("*")} == before


def test_the_list_is_compared_with_what_is_there_all_of_it(home: Path) -> None:
    pack(home)

    def change(entity: dict[str, Any]) -> None:
        if entity["@id"] == "REASONS.md":
            entity["contentSize"] = "1"
        if entity["@id"] == "records.jsonl":
            entity["@id"] = "../../.bashrc"

    rewrite_metadata(home / "pack.zip", change)
    said = refusal(home)
    assert "holds records.jsonl, which" in said
    assert "lacks '../../.bashrc', which" in said
    assert "REASONS.md has " in said
    assert "nothing was unpacked; get it again" in said


def test_what_holds_no_results(home: Path) -> None:
    pack(home)

    def drop(entity: dict[str, Any]) -> None:
        if entity["@id"] == "manifest.json":
            entity["@type"] = "CreativeWork"

    rewrite_metadata(home / "pack.zip", drop)
    rewrite(home / "pack.zip", lambda name, data: None if name == "manifest.json" else data)
    assert "holds no results" in refusal(home)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (b"", "is none, or of no pack"),
        (b"[]", "is none, or of no pack"),
        (b'{"@graph": 1}', "is none, or of no pack"),
        (b'{"@graph": []}', "names no format of a pack"),
        (b'{"@graph": [{"@id": "#format", "value": "\\u001b[2J"}]}', "names no format of a pack"),
        (
            b'{"@graph": [{"@id": "#format", "value": "1"}, {"@id": "x", "@type": "File"}]}',
            "does not say size and SHA-256 of 'x'",
        ),
        (b"[" * 100_000, "is none, or of no pack"),
    ],
)
def test_metadata_of_no_pack(home: Path, metadata: bytes, problem: str) -> None:
    pack(home)
    rewrite(home / "pack.zip", lambda name, data: metadata if name == METADATA_FILE else data)
    assert problem in refusal(home)


def test_a_full_disk_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(home)
    before = sorted(home.iterdir())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Container, "extract", fail)
    with pytest.raises(StorageError, match="No space left"):
        unpack_results(home / "pack.zip", home / "new")
    assert sorted(home.iterdir()) == before


def test_room_is_looked_for_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(home)
    usage = shutil.disk_usage(home)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(StorageError, match="has 1000 free"):
        unpack_results(home / "pack.zip", home / "deep" / "new")
