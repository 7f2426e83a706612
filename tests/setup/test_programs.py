from __future__ import annotations

from pathlib import Path

from testbed.client import CLIENTS
from testbed.client.program import Program
from testbed.root.cache import Root
from testbed.setup.programs import find, package_names, programs_of


def test_the_root_has_each_program_of_each_client(root: Root) -> None:
    for program in programs_of(tuple(CLIENTS)):
        file = find(program, root.usr)
        assert file is not None, program.name
        assert file.is_relative_to(root.usr.resolve())


def test_a_client_brings_its_own_programs_and_no_others() -> None:
    base = programs_of(())
    assert programs_of(("graph",)) == base
    (wget2,) = set(programs_of(("wget2",))) - set(base)
    assert package_names(wget2) == ("wget2",)
    (browser,) = set(programs_of(("chromium", "graph"))) - set(base)
    assert package_names(browser) == ("chromium-headless-shell", "fonts-dejavu-core")


def test_only_what_is_in_the_root_is_found(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "x"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    assert find(Program("x", "x"), tmp_path) == program
    assert find(Program("x", "x", (Path("/usr/lib/x"), Path("/usr/bin/x"))), tmp_path) == program
    assert find(Program("x", "x", (program,)), tmp_path) is None
    assert find(Program("sh", "dash"), tmp_path) is None
