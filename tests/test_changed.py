"""The tests that `make check` runs: of what changed, the nearest first, as many as fit."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import grimp
import pytest

from tests.changed import (
    ALWAYS,
    BUDGET_S,
    FILE_S,
    ROOT,
    changed_files,
    choose,
    fitting,
    nearest,
    untouched_wings,
)
from tests.kernel.small_tree import commit, git, make_repository


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository on a branch that has nothing of its own."""
    root = make_repository(tmp_path / "tree")
    git(root, "switch", "--quiet", "--create", "mine")
    return root


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_committed_changed_and_new_files_are_found(tree: Path) -> None:
    assert changed_files(tree) == ()
    write(tree, {"testbed/queue.py": "A = 1\n"})
    commit(tree, "a queue")
    write(
        tree, {"testbed/link.py": "", "tests/test_new.py": "", ".gitignore": "*.log\n", "a.log": ""}
    )
    (tree / "main.c").unlink()
    found = {".gitignore", "main.c", "testbed/link.py", "testbed/queue.py", "tests/test_new.py"}
    assert set(changed_files(tree)) == found
    git(tree, "switch", "--quiet", "--detach", "main")
    assert "testbed/queue.py" not in changed_files(tree)
    assert changed_files(tree.parent) == ()  # no repository


def test_nearest_first() -> None:
    graph = grimp.ImportGraph()
    chain = ["tests.test_far", "testbed.far", "testbed.near", "testbed.changed"]
    for importer, imported in pairwise(chain):
        graph.add_import(importer=importer, imported=imported)
    graph.add_import(importer="tests.test_near", imported="testbed.changed")
    graph.add_import(importer="testbed.changed", imported="testbed.far")  # a circle
    rings = list(nearest(graph, ["testbed.changed", "testbed.gone"]))
    assert rings == [[], ["tests.test_near"], [], ["tests.test_far"]]


def test_what_a_change_reaches_is_chosen_in_order() -> None:
    """In this tree, whose packages are those that can be imported."""
    assert choose(ROOT, []) == [*ALWAYS]
    *first, itself = choose(ROOT, ["tests/base/test_units.py"])[:3]
    assert (first, itself) == ([*ALWAYS], "tests/base/test_units.py")
    further = choose(ROOT, ["bootstrap/install-packages.sh"])
    assert "tests/test_package_installation.py" in further
    chosen = choose(ROOT, ["tests/native/conftest.py"], budget_s=10 * BUDGET_S)
    below = {str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "native").glob("test_*.py")}
    assert below <= set(chosen)


def test_what_does_not_fit_is_left_out() -> None:
    took = {"a.py::test_long": (30.0, 1), "a.py::test_short": (2.0, 4), "b.py::test": (9.0, 1)}
    files = ["a.py", "b.py", "c.py"]
    assert fitting(files, took, 3 * FILE_S + 11.5) == (files, ["a.py::test_long"], 0.5)
    assert fitting(files, took, 2 * FILE_S + 0.1)[0] == files[:2]
    assert fitting(["c.py"], took, BUDGET_S) == (["c.py"], [], BUDGET_S - FILE_S)


@pytest.mark.parametrize(
    ("changed", "untouched"),
    [
        ("wings/near/data.csv", ["far"]),
        ("testbed/imported.py", ["far"]),
        ("testbed/further.py", ["far"]),
        ("wings/far/__init__.py", ["near"]),
        ("testbed/apart.py", ["near", "far"]),
        ("README.md", ["near", "far"]),
    ],
)
def test_a_wing_is_tested_when_it_or_what_it_imports_changed(
    changed: str, untouched: list[str]
) -> None:
    graph = grimp.ImportGraph()
    for module in ("wings.near", "wings.near.tests", "wings.far", "testbed.apart"):
        graph.add_module(module)
    chain = ["wings.near.tests.test_all", "wings.near.verb", "testbed.imported", "testbed.further"]
    for importer, imported in pairwise(chain):
        graph.add_import(importer=importer, imported=imported)
    assert untouched_wings(graph, ["near", "far"], [changed]) == untouched
