"""The engine without a wing: all of it can be imported, and plans, with the wing's folder away."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import proc
from testbed.base.places import ROOT
from testbed.base.wings import provided, wings
from testbed.kinds import KINDS

ENGINE = ("testbed", "analysis", "firstflight")
SHOWN = (".py", ".jinja", ".css", ".js")
"""Files that say what the engine is; others were made or measured with all wings."""
NEEDS = {wing.__name__.rpartition(".")[2]: getattr(wing, "NEEDS", ()) for wing in wings()}
SAY = ("-c", "import firstflight.results_reference as r; print(r.render_results())")
PLAN = ("-m", "firstflight", "plan", "configs/quick.toml")
IMPORT_ALL = """\
import importlib, pkgutil, sys
names = [
    found.name
    for package in sys.argv[1:]
    for found in pkgutil.walk_packages([package], f"{package}.")
    if not found.name.endswith(("__main__", ".guest_entry"))
]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # such as Mininet, which is in guests alone
        if error.name.split(".")[0] in ("wings", *sys.argv[1:]):
            raise
print(len(names), *(name for name in sys.modules if name.startswith("wings.")))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree as this one, whose folders of data are this one's."""
    tree = tmp_path_factory.mktemp("engine") / "tree"
    tree.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    for entry in ROOT.iterdir():
        if entry.name in (*ENGINE, "wings"):
            shutil.copytree(entry, tree / entry.name, ignore=ignored, symlinks=True)
        elif not entry.name.startswith("."):
            (tree / entry.name).symlink_to(entry)
    return tree


@pytest.fixture
def tree(whole: Path, tmp_path: Path) -> Iterator[Path]:
    """The whole tree, whose wings are put back after the test."""
    shutil.copytree(whole / "wings", tmp_path / "wings")
    yield whole
    shutil.rmtree(whole / "wings", ignore_errors=True)
    (tmp_path / "wings").rename(whole / "wings")


def run(tree: Path, *words: str) -> str:
    """Run Python in the tree, and return what it says; what was compiled once stays so."""
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tree.parent / "compiled")}
    environment = {**os.environ, "PYTHONPATH": str(tree), **compiled}
    return proc.run((sys.executable, "-P", *words), cwd=tree, env=environment, timeout_s=300).stdout


@pytest.fixture(scope="module")
def planned(whole: Path) -> str:
    """The plan of the tree with all its wings."""
    return run(whole, *PLAN)


@pytest.mark.parametrize("wing", NEEDS)
def test_the_engine_runs_with_a_wing_taken_away(tree: Path, planned: str, wing: str) -> None:
    shutil.rmtree(tree / "wings" / wing)
    count, *imported = run(tree, "-c", IMPORT_ALL, *ENGINE).split()
    assert int(count) > 100
    assert not any(name.split(".")[1] == wing for name in imported)
    assert run(tree, *PLAN) == planned != ""
    leaving = {wing} | {each for each, needs in NEEDS.items() if wing in needs}
    verbs = [each.name for each in provided("verbs") if each.wing in leaving]
    listed = {line.split()[0] for line in run(tree, "-m", "firstflight", "--help").splitlines()
              if line.startswith("  ") and line.strip()}  # fmt: skip
    assert {"run", "compare"} <= listed
    assert listed.isdisjoint(verbs)
    places = run(tree, "-c", "import firstflight.completion as c; print(*c.ARGUMENT_PLACES)")
    assert not any(f"{verb} " in f"{places.strip()} " for verb in verbs)


@pytest.mark.parametrize("kind", [each.name for each in provided("kinds")])
def test_the_engine_does_not_name_a_kind_of_trial_that_a_wing_provides(kind: str) -> None:
    named = re.compile(rf"\b{kind}s?\b", re.IGNORECASE)
    files = (file for room in ENGINE for file in (ROOT / room).rglob("*") if file.suffix in SHOWN)
    assert [str(file) for file in files if named.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("wing", sorted({each.wing for each in provided("kinds")}))
def test_nothing_is_said_of_a_kind_whose_wing_is_taken_away(tree: Path, wing: str) -> None:
    kinds = [each.name for each in provided("kinds") if each.wing == wing]
    words = [word for kind in kinds for word in (KINDS[kind].trial, *KINDS[kind].file_words)]
    assert all(word in run(tree, *SAY) for word in words)
    shutil.rmtree(tree / "wings" / wing)
    said = run(tree, *SAY)
    assert "trial.json" in said
    assert not any(word in said for word in words)


def test_the_engine_runs_without_any_wing(tree: Path, planned: str) -> None:
    shutil.rmtree(tree / "wings")
    (count,) = run(tree, "-c", IMPORT_ALL, *ENGINE).split()
    assert int(count) > 100
    assert run(tree, *PLAN) == planned != ""
