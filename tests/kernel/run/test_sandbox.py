"""What a hostile trial leaves in its folder, and what readers then find there."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from testbed.kernel.run import sandbox
from testbed.kernel.run.sandbox import keep_regular_files, read_end, read_excess

DEPTH = 3000


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def modes(out: Path) -> dict[str, str]:
    return {path.name: stat.filemode(path.lstat().st_mode) for path in out.iterdir()}


def test_files_get_a_fixed_mode(out: Path) -> None:
    for name, mode in (("setuid", 0o6755), ("closed", 0o000), ("open", 0o666), ("sticky", 0o1777)):
        (out / name).write_text(name)
        (out / name).chmod(mode)
    out.chmod(0o7777)
    keep_regular_files(out)
    assert modes(out) == dict.fromkeys(("setuid", "closed", "open", "sticky"), "-rw-r--r--")
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    assert (out / "closed").read_text() == "closed"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")
def test_a_setuid_program_of_another_user_is_the_callers_plain_file(out: Path) -> None:
    (out / "shell").write_bytes(b"\x7fELF")
    (out / "roots").write_bytes(b"\x7fELF")
    os.chown(out / "shell", 1234, 1235)
    os.chown(out, 1234, 1235)
    for name in ("shell", "roots"):
        (out / name).chmod(0o6755)
    keep_regular_files(out)
    for path in (out, out / "shell", out / "roots"):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())
        assert stat.S_IMODE(found.st_mode) == (0o755 if path == out else 0o644)


def test_what_is_no_file_is_removed(out: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    precious.chmod(0o600)
    (out / "link").symlink_to(precious)
    (out / "folder").mkdir()
    (out / "folder" / "link").symlink_to(tmp_path)
    (out / "folder" / "file").touch()
    (out / "to-folder").symlink_to(tmp_path)
    os.mkfifo(out / "pipe")
    (out / "closed").mkdir()
    (out / "closed" / "inner").mkdir()
    (out / "closed" / "inner" / "file").touch()
    (out / "closed" / "inner").chmod(0)
    (out / "closed").chmod(0)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(os.path.relpath(out / "socket"))
    (out / "kept").write_text("kept")
    keep_regular_files(out)
    assert modes(out) == {"kept": "-rw-r--r--"}
    assert stat.S_IMODE(precious.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "precious"]


def test_folders_of_any_depth_are_removed(out: Path) -> None:
    here = os.open(out, os.O_RDONLY)
    for _ in range(DEPTH):  # deeper than any path, stack or number of descriptors
        os.mkdir("a" * 200, dir_fd=here)
        inner = os.open("a" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (out / ".removing-0").write_text("a file of a name that is used for removing")
    keep_regular_files(out)
    assert modes(out) == {".removing-0": "-rw-r--r--"}


def test_a_folder_that_is_a_link_is_not_followed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(out)
    (out / "file").chmod(0o600) if (out / "file").exists() else (out / "file").touch(0o600)
    with pytest.raises(OSError, match="link"):
        keep_regular_files(tmp_path / "link")


def test_the_console_is_the_one_that_was_opened(out: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with (out / "console.log").open("w+b") as console:
        console.write(b"x" * sandbox.CONSOLE_TAIL_BYTES + b"said\n")
        console.flush()
        (out / "console.log").unlink()
        (out / "console.log").symlink_to(tmp_path / "secret")
        end = read_end(console)
    assert end.endswith("xsaid\n")
    assert len(end) == sandbox.CONSOLE_TAIL_BYTES


def test_a_trial_that_fills_the_disk_is_seen(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (out / "file").write_bytes(bytes(1 << 20))
    (out / "sparse").touch()
    os.truncate(out / "sparse", 1 << 40)  # takes no room
    assert read_excess(out) == ""
    monkeypatch.setattr(sandbox, "MOST_BYTES", 1 << 19)
    assert read_excess(out) == "left more than 512.0 KiB"
    monkeypatch.setattr(sandbox, "MOST_FILES", 1)
    (out / "file").unlink()
    assert read_excess(out) == ""
    (out / "other").touch()
    assert read_excess(out) == "left more than 1 files"
    (out / "other").unlink()
    (out / "folder").mkdir()
    (out / "sparse").unlink()
    assert read_excess(out) == "made a folder in its results"
