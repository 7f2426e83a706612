"""A packed run is repeated where its page was never seen, to the bit; what differs is shown."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path

import pytest

from testbed.base import places
from testbed.model import CAPTURE_FILE
from testbed.results.folder import read_records
from testbed.results.manifest import load_manifest
from testbed.root.cache import packed_place
from testbed.runner import prepare
from testbed.setup import root_pack
from tests.acceptance.house import House, open_house
from wings.packs.tests.results import rewrite

pytestmark = pytest.mark.guest

PAGE = "my-own"
ROOT = "debian-13"


def test_a_pack_is_rerun_and_is_the_same_or_says_what_differs(house: House, tmp_path: Path) -> None:
    shutil.copytree(places.ROOT / "pages" / "file-60k", house.pages / PAGE)
    ran = house.run(page=PAGE, client="graph", rtt_ms=20, tfo=[False, True], seed=3)
    assert [record.outcome for record in ran.records] == ["ok", "ok"]
    file = tmp_path / "mine.zip"
    code, said = house.command("pack", str(ran.folder), "-o", str(file))
    assert code == 0, said
    shutil.rmtree(house.pages / PAGE)

    words = ("unpack", str(file), str(tmp_path / "same"), "--rerun", "-o", str(tmp_path / "again"))
    code, said = house.command(*words)
    assert code == 0, said
    assert "SAME: 2 cells, 2 same." in said
    old, new = (read_records(folder) for folder in (ran.folder, tmp_path / "again"))
    assert {(r.trial_id, r.artefacts[CAPTURE_FILE]) for r in old} == {
        (r.trial_id, r.artefacts[CAPTURE_FILE]) for r in new
    }

    folder = tmp_path / "tampered"
    shutil.copytree(tmp_path / "same", folder)
    lines = (folder / "records.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["load"]["plt_ms"] += 7.0
    (folder / "records.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    assert house.command("pack", str(folder), "-o", str(tmp_path / "other.zip"))[0] == 0
    code, said = house.command(
        "unpack", str(tmp_path / "other.zip"), str(tmp_path / "other"), "--rerun"
    )
    assert code == 1, said
    assert "DIFFERENT: 2 cells, 1 different" in said

    rewrite(file, lambda name, data: data[:-1] if name == "records.jsonl" else data)
    code, said = house.command("unpack", str(file), str(tmp_path / "damaged"), "--rerun")
    assert code == 2
    assert not (tmp_path / "damaged").exists()


@pytest.mark.slow
@pytest.mark.nightly
def test_an_artifact_is_rerun_in_its_own_root_where_the_tree_has_none(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(places.ROOT / "pages" / "file-60k", house.pages / "packed")
    ran = house.run(page="packed", client="graph", tfo=[False, True], root=ROOT)
    quick = {"id": lzma.FILTER_LZMA2, "preset": 0}
    monkeypatch.setattr(root_pack, "FILTERS", (quick,))
    file = tmp_path / "mine.tar"
    code, said = house.command("pack", str(ran.folder), "--with-root", "-o", str(file))
    assert code == 0, said

    def refuse(*_asked: object) -> None:
        raise AssertionError("the tree's own root was asked for")

    monkeypatch.setattr(prepare, "ensure_named", refuse)
    home = tmp_path / "elsewhere"
    (home / "firstflight").mkdir(parents=True)
    (home / "firstflight" / "kernels").symlink_to(house.cache / "kernels")
    (tmp_path / "other").mkdir()
    with open_house(tmp_path / "other", home) as other:
        again = tmp_path / "again"
        words = ("unpack", str(file), str(tmp_path / "there"), "--rerun", "-o", str(again))
        code, said = other.command(*words)
        assert code == 0, said
        assert "SAME: 2 cells, 2 same." in said
        then, now = (load_manifest(folder).environment for folder in (ran.folder, again))
        assert now.id == then.id
        assert packed_place(now.parts["root"], other.cache).is_dir()
    assert {(r.trial_id, r.artefacts[CAPTURE_FILE]) for r in read_records(again)} == {
        (r.trial_id, r.artefacts[CAPTURE_FILE]) for r in ran.records
    }
