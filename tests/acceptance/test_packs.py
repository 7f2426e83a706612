"""A packed run is repeated where its page was never seen, to the bit; what differs is shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from testbed.base import places
from testbed.model import CAPTURE_FILE
from testbed.results.store import read_records
from tests.acceptance.house import House
from tests.packs.results import rewrite

pytestmark = pytest.mark.guest

PAGE = "my-own"


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
