"""Handing out: what is missing comes, file by file, and what is there stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wings.papers.teaching import hand_out as tool
from wings.papers.teaching.hand_out import hand_out

LABS = ("1-one", "2-two")
FILES = ("sheet.html", "sheet.pdf")


@pytest.fixture(autouse=True)
def two_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labs, handed out without nbgrader and Chromium."""

    def release(lab: Path, course: Path) -> Path:
        return Path(shutil.copytree(lab, course / lab.name))

    def write_sheet(notebook: Path) -> None:
        for name in FILES:
            notebook.with_name(name).write_text(f"{name} of {notebook.stem}")

    for name in LABS:
        (tmp_path / "source" / name).mkdir(parents=True)
        (tmp_path / "source" / name / f"{name}.ipynb").write_text(f"asked in {name}")
    monkeypatch.setattr(tool, "SOURCE", tmp_path / "source")
    monkeypatch.setattr(tool, "release", release)
    monkeypatch.setattr(tool, "write_sheet", write_sheet)


def all_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


WHOLE = sorted(f"{lab}/{name}" for lab in LABS for name in (f"{lab}.ipynb", *FILES))


def test_labs_are_new_once(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    assert hand_out(mine) == [mine / lab for lab in LABS]
    assert all_files(mine) == WHOLE
    assert hand_out(mine) == []


def test_what_was_removed_comes_back_and_what_is_there_stays(tmp_path: Path) -> None:
    hand_out(mine := tmp_path / "mine")
    removed = [mine / "1-one" / "1-one.ipynb", mine / "2-two" / "sheet.pdf"]
    for path in removed:
        path.unlink()
    kept = [mine / name for name in WHOLE if mine / name not in removed]
    for path in kept:
        path.write_text("solved")
    assert hand_out(mine) == removed
    assert [path.read_text() for path in removed] == ["asked in 1-one", "sheet.pdf of 2-two"]
    assert {path.read_text() for path in kept} == {"solved"}


@pytest.mark.parametrize("at", FILES)
def test_an_interrupted_hand_out_is_gone_on_with(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    read = Path.read_bytes

    def interrupted(path: Path) -> bytes:
        if path.name == at:
            raise KeyboardInterrupt
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hand_out(mine)
    there = all_files(mine)
    assert f"1-one/{at}" not in there and "1-one/1-one.ipynb" in there
    (mine / "1-one" / "1-one.ipynb").write_text("solved")
    hand_out(mine)
    assert all_files(mine) == WHOLE
    assert (mine / "1-one" / "1-one.ipynb").read_text() == "solved"
