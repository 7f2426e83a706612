from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import StorageError
from testbed.base.places import ROOT
from testbed.base.scratch import scratch_folder
from testbed.setup.clean import find_leftovers, remove

KILLED = """\
import os, signal
from testbed.base.scratch import scratch_folder
with scratch_folder("stage") as folder:
    (folder / "file").write_text("left")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_that_a_process_uses_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    others = ("firstflight-results1", "firstflight-stage-dead", "other-stage-abcdefgh")
    for name in others:
        (tmp_path / name).mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = proc.run([sys.executable, "-c", KILLED], cwd=ROOT, env=env, check=False)
    assert done.returncode == -9
    with scratch_folder("serve") as used:
        found = find_leftovers(tmp_path / "cache", tmp_path)
        assert {f.path.name.split("-")[1]: f.kept for f in found} == {
            "serve": "a process uses it",
            "stage": "",
        }
        remove(found)
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*others, used.name])
    assert not used.exists()


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "pages").symlink_to(tmp_path / "precious")
    (tmp_path / "firstflight-stage-abcdefgh").symlink_to(tmp_path / "precious")
    remove(find_leftovers(cache, tmp_path))
    assert not (cache / "pages").is_symlink()
    assert (tmp_path / "firstflight-stage-abcdefgh").is_symlink()
    assert (tmp_path / "precious" / "file").exists()


def test_the_environment_that_runs_this_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("old", "new"):
        (tmp_path / "venv" / key).mkdir(parents=True)
        (tmp_path / "python" / key / "usr").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv" / "new"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "python" / "new" / "usr"))
    remove(find_leftovers(tmp_path, tmp_path / "none"))
    assert [p.name for p in (tmp_path / "venv").iterdir()] == ["new"]
    assert [p.name for p in (tmp_path / "python").iterdir()] == ["new"]


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    found = find_leftovers(tmp_path, tmp_path / "none")
    (tmp_path / "pages").rmdir()
    with pytest.raises(StorageError, match="pages: No such file"):
        remove(found)
