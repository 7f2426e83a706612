"""Mutations: small changes of what judges and reports, each found by the tests of its room.

Each is made in a tree of links beside the work tree, which stays as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess  # noqa: TID251 - only the type of what proc returns

import pytest

from testbed.base import proc

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutations.toml")
NEAR = "not (root or guest or browser or slow or thorough or nightly)"
PATIENT_S = 900  # a busy machine may take its time
PASSED, FAILED = 0, 1
"""What pytest ends with; any other status, such as that of an import error, finds nothing."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A text that occurs once in ``file``, what comes in its place, and the tests of its room."""

    file: str
    old: str
    new: str
    tests: list[str]

    def __str__(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())}"

    @property
    def text(self) -> str:
        """The whole file with the mutation."""
        text = (ROOT / self.file).read_text()
        found = text.count(self.old)
        assert found == 1, (
            f"{self} is there {found} times: renew it in {LIST.name}, so that it changes what the "
            "file says now"
        )
        return text.replace(self.old, self.new)


MUTATIONS = [Mutation(**each) for each in tomllib.loads(LIST.read_text())["mutation"]]
ONE = MUTATIONS[:1]
CASES = [
    pytest.param(each, marks=[] if each in ONE else [pytest.mark.nightly], id=str(each))
    for each in MUTATIONS
]


def link_tree(tree: Path, files: set[str]) -> None:
    """Make a tree of links to the work tree, in which the folders of ``files`` are its own."""
    own = {ROOT / file for file in files}
    folders = {folder for file in own for folder in file.parents if folder.is_relative_to(ROOT)}
    for folder in sorted(folders):
        place = tree / folder.relative_to(ROOT)
        place.mkdir()
        for path in folder.iterdir():
            # Bytecode of a mutation must not get into the work tree.
            if path not in folders | own and path.name[0] != "." and path.name != "__pycache__":
                (place / path.name).symlink_to(path)


def run_tests(tree: Path, tests: set[str]) -> CompletedProcess[str]:
    argv = (sys.executable, "-P", "-m", "pytest", "-xq", "-p", "no:cacheprovider", "-m", NEAR)
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return proc.run([*argv, *sorted(tests)], cwd=tree, env=env, check=False, timeout_s=PATIENT_S)


def test_each_says_what_its_file_says_now() -> None:
    assert len(MUTATIONS) >= 40
    for mutation in MUTATIONS:
        compile(mutation.text, mutation.file, "exec")


@pytest.mark.nightly(but="^one$")
@pytest.mark.parametrize("mutations", [ONE, MUTATIONS], ids=["one", "all"])
def test_without_them_the_same_tests_pass(tmp_path: Path, mutations: list[Mutation]) -> None:
    files = {mutation.file for mutation in mutations}
    link_tree(tmp_path / "tree", files)
    for file in files:
        shutil.copy(ROOT / file, tmp_path / "tree" / file)
    done = run_tests(tmp_path / "tree", {test for each in mutations for test in each.tests})
    assert done.returncode == PASSED, done.stdout


@pytest.mark.parametrize("mutation", CASES)
def test_it_is_found(tmp_path: Path, mutation: Mutation) -> None:
    link_tree(tmp_path / "tree", {mutation.file})
    (tmp_path / "tree" / mutation.file).write_text(mutation.text)
    done = run_tests(tmp_path / "tree", {*mutation.tests})
    assert done.returncode == FAILED, f"no test of the room finds it:\n{done.stdout}{done.stderr}"
    # A fixture that breaks says little: an assertion has to fail.
    assert "1 failed" in done.stdout, done.stdout
