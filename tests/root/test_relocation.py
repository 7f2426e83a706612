"""Programs that run by another loader: what is written into them, and what cannot be."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.errors import StorageError
from testbed.root import relocation
from testbed.root.interpreter import LIBRARIES, LOADER

CAT = Path(shutil.which("cat") or "")
LONG = "a folder of a long name, " * 8


def machine_loader() -> Path:
    """The loader that this machine's programs name."""
    said = proc.run(["readelf", "--program-headers", str(CAT)]).stdout
    (name,) = re.findall(r"interpreter: (\S+)\]", said)
    return Path(name).resolve()


@pytest.fixture
def usr(tmp_path: Path) -> Path:
    """A root of one program of this machine, with its libraries."""
    usr = tmp_path / "root" / "usr"
    for place in (LOADER, LIBRARIES, "bin"):
        (usr / place).parent.mkdir(parents=True, exist_ok=True)
    (usr / LIBRARIES).mkdir()
    (usr / "bin").mkdir()
    shutil.copy(machine_loader(), usr / LOADER)
    for name in re.findall(r"=> (/\S+)", proc.run(["ldd", str(CAT)]).stdout):
        shutil.copy(name, usr / LIBRARIES)
    shutil.copy(CAT, usr / "bin" / "cat")
    (usr / "bin" / "show").symlink_to("cat")
    (usr / "bin" / "script").write_text("#!/bin/sh\n")
    (usr / "bin" / "script").chmod(0o755)
    return usr


@pytest.mark.parametrize("name", ["here", LONG.replace(" ", "-")])
def test_a_program_runs_by_the_loader_and_libraries_beside_it(
    usr: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name / "usr"
    relocation.relocate(usr, folder)
    maps = proc.run([str(folder / "bin" / "show"), "/proc/self/maps"], env={}).stdout
    mapped = {Path(place) for place in re.findall(r" (/.*)$", maps, re.MULTILINE)}
    needed = {"bin/cat", LOADER, f"{LIBRARIES}/libc.so.6"}
    assert mapped == {folder / name for name in needed}


def test_a_program_may_run_where_its_folder_is_seen_at_another_place(
    usr: Path, tmp_path: Path
) -> None:
    folder, seen = tmp_path / "there" / "usr", tmp_path / "seen" / "usr"
    relocation.relocate(usr, folder, seen)
    assert (folder / "bin" / "cat").stat().st_mtime == (usr / "bin" / "cat").stat().st_mtime
    folder.parent.rename(seen.parent)
    assert proc.run([str(seen / "bin" / "cat"), "/proc/self/comm"], env={}).stdout == "cat\n"


def test_other_files_are_the_same_ones(usr: Path, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    relocation.relocate(usr, folder)
    for name in (LOADER, "bin/script", f"{LIBRARIES}/libc.so.6"):
        assert (folder / name).samefile(usr / name)
    assert (folder / "bin" / "show").readlink() == Path("cat")
    assert not (folder / "bin" / "cat").samefile(usr / "bin" / "cat")
    assert os.access(folder / "bin" / "cat", os.X_OK)


def test_a_name_for_which_there_is_no_room_is_refused(
    usr: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relocation, "_PAGE", 1)
    with pytest.raises(StorageError, match=r"cat cannot be made to run elsewhere: .* no room for"):
        relocation.relocate(usr, tmp_path / "there")
