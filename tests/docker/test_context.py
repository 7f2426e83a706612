"""What an image is built of holds all that its verbs and configs read, without an engine."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path, PurePath

import pytest

from firstflight.usage import read_verbs
from testbed.base import places, proc
from tests.docker.context import copy_context, is_left_out, read_rules

CONFIGS = sorted(path.name for path in places.CONFIGS.glob("*.toml"))
READING = (
    *("baseline list", "baseline show nightly", "completion bash", "knobs"),
    *("compare analysis/baselines/nightly analysis/baselines/nightly", "history list"),
    *("kernel add mine --config nothing-like-this", "kernel list", "kernel show 7.3", "links"),
    *("links show wpt-dsl", "pages list", "pages show wsj", "pages verify wsj", "root list"),
    "scenario",
)
"""Verbs that change nothing, and need neither a kernel nor a network."""
WRITTEN_BY_AUTHORS = {"CONTRIBUTING.md", "README.md", "STATUS.md"}
"""What `make reference` and `make readme` write, in a work tree alone."""
WRITTEN_BY_RUNS = {"results"}
PROGRAM = """
import contextlib, io, json, sys
from firstflight.cli.main import main
from firstflight.cli.services import program_services
ended = []
for line in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(line.split(), program_services())
    ended.append((line, code, said.getvalue()))
json.dump(ended, sys.stdout)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of an image."""
    folder = tmp_path_factory.mktemp("image") / "tree"
    copy_context(folder)
    return folder


def perform(tree: Path, lines: list[str], home: Path) -> list[tuple[str, int, str]]:
    """What each line of ``./run.sh`` ends with in ``tree`` and says, but for the tree's place."""
    env = {**os.environ, "PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(home / "cache"),
           "XDG_DATA_HOME": str(home / "data")}  # fmt: skip
    done = proc.run((sys.executable, "-P", "-c", PROGRAM), cwd=tree, env=env, timeout_s=600,
                    stdin=json.dumps(lines))  # fmt: skip
    place = re.compile(rf"{re.escape(str(tree))}\b")
    return [(line, code, place.sub("TREE", said)) for line, code, said in
            json.loads(done.stdout)]  # fmt: skip


def test_every_config_and_verb_does_there_what_it_does_in_the_work_tree(
    tree: Path, tmp_path: Path
) -> None:
    lines = [f"run configs/{name} --dry-run" for name in CONFIGS]
    lines += [*READING, *(f"{verb} --help" for verb in read_verbs())]
    there, here = (perform(each, lines, tmp_path) for each in (tree, places.ROOT))
    assert [(line, code, said[-300:]) for (line, code, said), ours in zip(there, here, strict=True)
            if (line, code, said) != ours] == []  # fmt: skip
    refused = [line for line, code, _ in there if code]
    assert refused == ["history list", "kernel add mine --config nothing-like-this"]


def test_every_path_that_the_program_names_is_there(tree: Path) -> None:
    rooms = ("analysis", "firstflight", "testbed", "wings")
    texts = [path.read_text() for room in rooms for path in (tree / room).rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'\bROOT / "([^"]+)"', text)}
    assert {"kernels", "traces", "pyproject.toml"} <= named
    absent = {name for name in named if not (tree / name).exists()}
    assert absent == WRITTEN_BY_AUTHORS | WRITTEN_BY_RUNS


def test_every_path_in_a_command_of_its_documents_is_there(tree: Path) -> None:
    commands = [line for path in tree.rglob("*.md")
                for line in re.findall(r"\./run\.sh ([^`#\n]*)", path.read_text())]  # fmt: skip
    folders = "|".join(path.name for path in places.ROOT.iterdir() if path.is_dir())
    named = {path for line in commands
             for path in re.findall(rf"(?<![\w/-])(?:{folders})/[\w./-]*\w", line)}  # fmt: skip
    a_readers = re.compile(r"results/.*|docker/packs/.*|.*/(mine|NAME)(\.toml)?")
    assert "kernels/mistakes/fast-open.patch" in named
    assert [path for path in sorted(named)
            if not a_readers.fullmatch(path) and not (tree / path).exists()] == []  # fmt: skip


def test_it_holds_no_tests_and_nothing_of_one_machine(tmp_path: Path) -> None:
    tree = tmp_path / "tree"  # nothing has run in this one
    copy_context(tree)
    assert not [path for path in tree.rglob("tests") if "site-packages" not in path.parts]
    assert not (tree / ".git").exists()
    assert not [path for path in tree.rglob("*") if path.name in ("__pycache__", "node_modules")]


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("Makefile", True),
        ("wings/pages/har_export.py", False),
        ("wings/pages/tests/test_table.py", True),
        ("wings/pages/tests.py", False),
        ("wings/a/b/tests/x.py", False),
        ("a/b/cache/x", True),
        ("wings/pages/x.log", True),
        ("wings/pages/kept.log", False),
    ],
)
def test_rules_are_dockers(tmp_path: Path, path: str, left_out: bool) -> None:
    rules = tmp_path / "rules"
    rules.write_text(
        "# a comment\n*\n!wings\nwings/*/tests\n**/cache\n**/*.log\n!wings/pages/kept.log\n"
    )
    assert is_left_out(PurePath(path), read_rules(rules)) == left_out
