from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed import proc
from testbed.clean import find_leftovers, remove
from testbed.errors import StorageError


def test_a_stage_that_a_guest_runs_in_is_kept(tmp_path: Path) -> None:
    for name in ("firstflight-stage-dead", "firstflight-stage-live", "other-stage-dead"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with proc.started(["sleep", "30"], cwd=tmp_path / "firstflight-stage-live"):
        found = find_leftovers(tmp_path / "cache", tmp_path)
        assert [(f.path.name, bool(f.kept)) for f in found] == [
            ("firstflight-stage-dead", False),
            ("firstflight-stage-live", True),
        ]
        remove(found)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "firstflight-stage-live",
        "other-stage-dead",
    ]


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "pages").symlink_to(tmp_path / "precious")
    (tmp_path / "firstflight-stage-x").symlink_to(tmp_path / "precious")
    remove(find_leftovers(cache, tmp_path))
    assert not (cache / "pages").is_symlink()
    assert (tmp_path / "firstflight-stage-x").is_symlink()
    assert (tmp_path / "precious" / "file").exists()


def test_the_environment_that_runs_this_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("old", "new"):
        (tmp_path / "venv" / key).mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv" / "new"))
    remove(find_leftovers(tmp_path, tmp_path / "none"))
    assert [p.name for p in (tmp_path / "venv").iterdir()] == ["new"]


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    found = find_leftovers(tmp_path, tmp_path / "none")
    (tmp_path / "pages").rmdir()
    with pytest.raises(StorageError, match="pages: No such file"):
        remove(found)
