"""A user's own files: what may be given to trials, and how the environment names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, MissingError
from testbed.setup import own
from testbed.setup.own import check_programs, digest_own, find_programs, list_own


def test_all_files_of_a_folder_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("b", "lib/a"):
        (tmp_path / name).write_text(name)
    (tmp_path / "c").symlink_to("b")
    assert list(list_own(tmp_path)) == ["b", "c", "lib/a"]


def test_what_cannot_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("pipe", "dangling", "folder", "many"):
        (tmp_path / place).mkdir()
    os.mkfifo(tmp_path / "pipe" / "p")
    (tmp_path / "dangling" / "d").symlink_to("nowhere")
    (tmp_path / "folder" / "f").symlink_to("/etc")
    for number in range(3):
        (tmp_path / "many" / str(number)).touch()
    monkeypatch.setattr(own, "MOST_FILES", 2)
    for place, said in (
        ("pipe", "not a file that can be given"), ("dangling", "No such file"),
        ("folder", "a link to a folder is not followed"), ("many", "more than 2 files"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=said):
            list_own(tmp_path / place)


def test_each_file_counts_by_its_digest(tmp_path: Path) -> None:
    script = tmp_path / "load.py"
    script.write_text("#!/usr/bin/env python3\n")
    assert digest_own({"load.py": script}) == {"file.{folder}/load.py": file_sha256(script)}


@pytest.fixture
def usr(tmp_path: Path) -> Path:
    """The /usr of a root with two programs."""
    usr = tmp_path / "usr"
    for name in ("bin/sh", "sbin/env"):
        (usr / name).parent.mkdir(parents=True)
        (usr / name).write_text("")
        (usr / name).chmod(0o755)
    return usr


def test_programs_are_those_of_the_root(usr: Path) -> None:
    find_programs(["sh -c true", "env", "{folder}/x", "/usr/sbin/env sh", "sh -c false"], usr)


def test_programs_that_are_not_there_are_all_named(usr: Path, tmp_path: Path) -> None:
    (usr / "bin" / "out").symlink_to("/bin/sh")
    commands = ["cc", "/usr/bin/env", "sh", f"{tmp_path}/usr/bin/sh", "out"]
    with pytest.raises(MissingError) as caught:
        find_programs(commands, usr)
    said = str(caught.value)
    assert said.startswith(f"command 'cc' and '/usr/bin/env' and '{tmp_path}/usr/bin/sh' and 'out'")
    assert "trials find no such program" in said


def test_a_program_that_the_folder_lacks() -> None:
    commands = ["{folder}/a b", "{folder}/c", "ls"]
    (problem,) = check_programs(commands, ["c", "d"])
    assert problem == "command {folder}/a: command_folder has no file 'a'"
