"""The toolchain: nothing of the machine's, made again when it is not whole, named by its lock."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.kernel.build import toolchain
from testbed.kernel.build.toolchain import Toolchain, ensure_toolchain, read_name
from testbed.root.cache import Root
from tests.kernel.toolchains import find_toolchain

PROGRAMS = """
ar as awk bash bc bison cat flex flock gcc grep ld m4 make nm objcopy patch sed setpriv sh sort
strip tar xargs xz
"""


@pytest.mark.parametrize("name", PROGRAMS.split())
def test_its_programs_run_by_their_own_loader(name: str) -> None:
    found = find_toolchain()
    libraries = f"{found.folder}/usr/lib/"
    loader = "/lib64/ld-linux-x86-64.so.2"  # what it calls itself, wherever it is
    run = [found.program("bash"), "-c", f"exec {name} --version </dev/null"]
    env = {**found.environment, "LD_DEBUG": "files"}
    said = proc.run(run, env=env, check=False).stderr
    loaded = [line.split()[-1] for line in said.splitlines() if "calling init: /" in line]
    assert loaded
    assert [place for place in loaded if not place.startswith((libraries, loader))] == []


def test_what_it_compiles_names_no_folder(tmp_path: Path) -> None:
    found = find_toolchain()
    (tmp_path / "a.c").write_text('#include <stdio.h>\nint main(void) { return puts("7") < 0; }\n')
    gcc = [found.program("gcc"), f"--sysroot={found.folder}", "-static", "-o", "a", "a.c"]
    proc.run(gcc, cwd=tmp_path, env=found.environment)
    assert proc.run([str(tmp_path / "a")]).stdout == "7\n"
    assert str(found.folder).encode() not in (tmp_path / "a").read_bytes()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache, and a root of one program and one file."""
    usr = tmp_path / "root" / "usr"
    for folder in ("bin", "share"):
        (usr / folder).mkdir(parents=True)
    shutil.copy(shutil.which("true") or "", usr / "bin" / "true")
    (usr / "share" / "file").write_text("read\n")
    root = Root("build", usr, "0" * 64)
    monkeypatch.setattr(toolchain, "ensure_root", lambda *_asked: root)
    return tmp_path / "cache"


def make(cache: Path) -> Toolchain:
    return ensure_toolchain(cache, pytest.fail)


def test_it_is_made_once(small: Path) -> None:
    made = make(small)
    assert made.name == read_name()
    assert (made.folder / "usr/share/file").samefile(small.parent / "root/usr/share/file")
    before = (made.folder / "usr/bin/true").stat()
    assert make(small) == made
    assert (made.folder / "usr/bin/true").stat() == before


@pytest.mark.parametrize("name", ["usr/bin/true", "toolchain.json"])
def test_a_damaged_one_is_made_again(small: Path, name: str) -> None:
    made = make(small)
    (made.folder / name).write_bytes(b"cut short")
    assert make(small) == made
    assert (made.folder / name).read_bytes() != b"cut short"


def test_one_that_was_moved_is_made_again(small: Path) -> None:
    made = make(small)
    moved = small.rename(small.with_name("moved"))
    again = make(moved)
    assert again.folder == moved / made.folder.relative_to(small)
    program = (again.folder / "usr/bin/true").read_bytes()
    assert str(again.folder).encode() in program
    assert str(made.folder).encode() + b"/" not in program


def test_its_environment_has_nothing_of_the_machines(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPATH", "/usr/local/include")
    made = make(small)
    assert set(made.environment) == {"PATH", "SYSROOT", "LC_ALL", "M4", "BISON_PKGDATADIR"}
    assert made.environment["PATH"] == f"{made.folder}/usr/bin"
