"""Resource tables: our own, and lists of page facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.archive.reading import read_archive
from testbed.base.errors import ConfigurationError
from testbed.pages.build import build_page
from wings.pages.importing.importer import ImportedTable
from wings.pages.importing.registry import read_recording
from wings.pages.importing.writing import WriteOptions, write_page

PAGES = Path(__file__).parents[4] / "pages"
FACTS = """\
page,url_host,mime,transfer_bytes,body_bytes,parent,source,id,start_ms,dur_ms,depth,parent_how,\
kind,status,gap_after_parent_end_ms
x,www.x.example,text/html,0,0,,"a, b",0,0,20,0,root,net,Moved Permanently,
x,www.x.example,text/html,9000,30000,0,s,1,30,50,1,redirect,net,OK,10
x,img.x.example,image/png,120,100,1,s,2,60,20,2,url-in-main-html,net,Found,-20
x,img.x.example,video/mp4,9000,8500,1,s,3,61,20,2,url-in-main-html,cached-lazyvideo,OK,-19
x,www.x.example,text/css,1500,3000,1,s,4,62,20,2,guessed,net,(disk cache),-18
"""


def read(path: Path, text: str) -> ImportedTable:
    path.write_text(text)
    found = read_recording(path)
    assert isinstance(found, ImportedTable)
    return found


def test_our_own_table_comes_back_as_it_was(tmp_path: Path) -> None:
    found = read(tmp_path / "x", (PAGES / "wsj" / "resources.csv").read_text())
    write_page(tmp_path / "copy", found, WriteOptions())
    original = read_archive(build_page(PAGES / "wsj", tmp_path / "cache"))
    copied = read_archive(build_page(tmp_path / "copy", tmp_path / "cache"))
    assert [x.transfer_bytes for x in copied.entries] == [
        x.transfer_bytes for x in original.entries
    ]
    assert found.notes == ()


def test_a_list_of_facts_becomes_a_table(tmp_path: Path) -> None:
    found = read(tmp_path / "x", FACTS)
    assert [(r.id, r.parent, r.status, r.transfer_bytes) for r in found.rows] == [
        ("0", None, 301, 480), ("1", "0", 200, 9480), ("2", "1", 200, 600), ("4", "1", 200, 1980),
    ]  # fmt: skip
    assert found.rows[3].how == "time-inferred"
    assert found.rows[2].gap_ms == -20
    notes = " ".join(found.notes)
    assert "Rows left out, not of the load itself: 1 (3, cached-lazyvideo)" in notes
    assert "Statuses sent as 200: 1 (2: Found)" in notes
    assert "Lists that count no heads" in notes
    write_page(tmp_path / "page", found, WriteOptions(title="Mine"))
    assert len(read_archive(build_page(tmp_path / "page", tmp_path / "c")).entries) == 4


def test_every_wrong_cell_is_told_at_once(tmp_path: Path) -> None:
    wrong = FACTS.replace("img.x.example,image", "img x,image").replace("1500", "many")
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path / "x", wrong)
    told = " ".join(caught.value.problems)
    assert ":4: host is 'img x'" in told and ":5: transfer_bytes is 'many'" in told
    with pytest.raises(ConfigurationError, match=":3: not as many cells"):
        read(tmp_path / "x", FACTS.replace(",redirect,net", ""))
