"""A folder is there whole or not at all, and a replaced one is never missing."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from testbed.base.whole_folder import OccupiedError, new_folder


def write(target: Path, text: str, *, replace: bool = False) -> None:
    with new_folder(target, replace=replace) as scratch:
        (scratch / "part").mkdir()
        (scratch / "part" / "file").write_text(text)


def read(target: Path) -> str:
    return (target / "part" / "file").read_text()


def test_it_is_readable_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write(tmp_path / "deep" / "new", "one")
    finally:
        os.umask(before)
    target = tmp_path / "deep" / "new"
    modes = {path: path.stat().st_mode & 0o777 for path in (target, *target.rglob("*"))}
    assert modes == {target: 0o755, target / "part": 0o755, target / "part" / "file": 0o644}


def test_it_is_not_there_before_its_end(tmp_path: Path) -> None:
    with new_folder(tmp_path / "new"):
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize("replace", [False, True])
def test_an_error_leaves_what_was(tmp_path: Path, replace: bool) -> None:
    if replace:
        write(tmp_path / "new", "old")
    with (
        pytest.raises(RuntimeError, match="stop"),
        new_folder(tmp_path / "new", replace=replace) as scratch,
    ):
        (scratch / "file").touch()
        raise RuntimeError("stop")
    assert [path.name for path in tmp_path.iterdir()] == (["new"] if replace else [])


def test_what_is_there_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    write(tmp_path / "new", "old")
    with pytest.raises(OccupiedError):
        write(tmp_path / "new", "one")
    assert read(tmp_path / "new") == "old"
    write(tmp_path / "new", "one", replace=True)
    assert read(tmp_path / "new") == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_one_that_came_in_between_stays(tmp_path: Path) -> None:
    with pytest.raises(OccupiedError), new_folder(tmp_path / "new"):
        write(tmp_path / "new", "rival")
    assert read(tmp_path / "new") == "rival"


def test_replacing_what_is_not_there(tmp_path: Path) -> None:
    write(tmp_path / "new", "one", replace=True)
    assert read(tmp_path / "new") == "one"


@pytest.mark.parametrize("kind", ["file", "pipe", "link", "dangling"])
def test_nothing_but_a_folder_is_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "new"
    (tmp_path / "other").mkdir()
    if kind == "file":
        target.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("other" if kind == "link" else "nowhere")
    before = target.lstat()
    with pytest.raises(NotADirectoryError):
        write(target, "one", replace=True)
    assert target.lstat().st_ino == before.st_ino
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "other"]


def test_a_file_that_came_in_between_stays_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError), new_folder(tmp_path / "new", replace=True):
        (tmp_path / "new").write_text("rival")
    assert (tmp_path / "new").read_text() == "rival"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


class NoExchange:
    """A C library on a file system that cannot exchange."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def renameat2(self, *_: object) -> int:
        ctypes.set_errno(errno.EINVAL)
        return -1


def test_without_an_exchange_the_old_one_goes_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "new", "old")
    monkeypatch.setattr(ctypes, "CDLL", NoExchange)
    write(tmp_path / "new", "one", replace=True)
    assert read(tmp_path / "new") == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_without_an_exchange_nothing_is_left_of_what_cannot_go_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "new", "old")
    monkeypatch.setattr(ctypes, "CDLL", NoExchange)

    def fail(_path: Path, _target: Path) -> Path:
        raise OSError(errno.EBUSY, "broken")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="broken"):
        write(tmp_path / "new", "one", replace=True)
    assert read(tmp_path / "new") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_without_an_exchange_the_old_one_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "new", "old")
    monkeypatch.setattr(ctypes, "CDLL", NoExchange)
    rename = Path.rename
    renamed: list[Path] = []

    def fail_once(path: Path, target: Path) -> Path:
        renamed.append(path)
        if len(renamed) == 2:
            raise OSError(errno.EIO, "broken")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match="broken"):
        write(tmp_path / "new", "one", replace=True)
    assert read(tmp_path / "new") == "old"
