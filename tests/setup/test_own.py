"""A user's own files: what may be given to trials, and how the environment names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.checksums import file_sha256
from testbed.base.errors import ConfigurationError, MissingError
from testbed.setup import own
from testbed.setup.own import check_programs, list_own, programs_named, read_own


def test_all_files_of_a_folder_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("b", "lib/a"):
        (tmp_path / name).write_text(name)
    (tmp_path / "c").symlink_to("b")
    assert list(list_own(tmp_path)) == ["b", "c", "lib/a"]


def test_what_cannot_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe" / "p"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    dangling = tmp_path / "dangling" / "d"
    dangling.parent.mkdir()
    dangling.symlink_to("nowhere")
    folder = tmp_path / "folder" / "f"
    folder.parent.mkdir()
    folder.symlink_to("/etc")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3):
        (many / str(number)).touch()
    monkeypatch.setattr(own, "MOST_FILES", 2)
    for place, said in (
        (pipe.parent, "not a file that can be given"),
        (dangling.parent, "No such file"),
        (folder.parent, "a link to a folder is not followed"),
        (many, "more than 2 files"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            list_own(place)


def test_each_file_counts_by_its_digest(tmp_path: Path) -> None:
    script = tmp_path / "load.py"
    script.write_text("#!/usr/bin/env python3\n")
    assert read_own({"load.py": script}) == {"file.{folder}/load.py": file_sha256(script)}


def test_so_do_the_libraries_of_a_program(tmp_path: Path) -> None:
    source, program = tmp_path / "x.c", tmp_path / "x"
    source.write_text("int main(void) { return 0; }\n")
    proc.run(("gcc", "-o", str(program), str(source)))
    found = read_own({"x": program})
    assert found["file.{folder}/x"] == file_sha256(program)
    assert "package.libc6" in found


def test_the_machines_programs_are_those_that_trials_find() -> None:
    found = programs_named(["sh -c true", "{folder}/x", "/usr/bin/env sh", "sh -c false"])
    assert [one.name for one in found] == ["sh", "/usr/bin/env"]


@pytest.mark.parametrize("command", ["no-such-program-here", "/usr/bin/no-such-program-here"])
def test_a_program_that_is_not_there(command: str) -> None:
    with pytest.raises(MissingError, match="trials find no such program"):
        programs_named([command])


def test_a_program_that_the_folder_lacks() -> None:
    commands = ["{folder}/a b", "{folder}/c", "ls"]
    (problem,) = check_programs(commands, ["c", "d"])
    assert problem == "command {folder}/a: command_folder has no file 'a'"
