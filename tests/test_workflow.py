"""The ready workflow and action: all verbs and paths that they name exist, actions are pinned."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from firstflight.cli import main as cli

ROOT = Path(__file__).parent.parent
WORKFLOW = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
ACTION = (ROOT / "action.yml").read_text()
PAPERS = {
    "workflow": WORKFLOW,
    "docs": (ROOT / "docs" / "nightly.md").read_text(),
    "make": (ROOT / "Makefile").read_text(),
    "status": (ROOT / "STATUS.md").read_text(),
}


def commands(text: str) -> list[list[str]]:
    """Every ``./run.sh`` line, continued lines joined, variables left as they are."""
    joined = re.sub(r"\\\n\s*", " ", text.replace("$$", "$"))
    found = re.findall(r"(?:^|[\s@`])\./run\.sh ([^\n`|;&]+)", joined)
    return [shlex.split(line) for line in found]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The click command that the first words name, and the rest."""
    command: click.Command = cli.testbed
    while isinstance(command, click.Group) and words:
        below = command.get_command(click.Context(command), words[0])
        assert below is not None, words
        command, words = below, words[1:]
    return command, words


@pytest.mark.parametrize("paper", PAPERS)
def test_every_command_is_one(paper: str) -> None:
    found = commands(PAPERS[paper])
    assert len(found) >= 2
    for words in found:
        command, rest = command_of(words)
        options = {name for parameter in command.params for name in parameter.opts}
        assert not isinstance(command, click.Group), words
        assert {word for word in rest if word.startswith("-")} <= options, words


@pytest.mark.parametrize("paper", PAPERS)
def test_every_path_is_there(paper: str) -> None:
    named = set(re.findall(r"(?:configs|analysis|docs|tests|wings/\w+)/[\w./-]*\w", PAPERS[paper]))
    assert {"configs/nightly.toml", "analysis/baselines/nightly"} <= named
    made_by_readers = {"configs/mine.toml", "analysis/baselines/mine", "wings/papers/notebooks"}
    assert [p for p in sorted(named - made_by_readers) if not (ROOT / p).exists()] == []


def test_actions_are_the_services_own_and_pinned() -> None:
    used = re.findall(r"uses: (\S+)", WORKFLOW + ACTION)
    assert len(used) >= 7
    shape = re.compile(
        r"\./|actions/(checkout|cache|cache/restore|cache/save|upload-artifact)@[0-9a-f]{40}"
    )
    assert [action for action in used if not shape.fullmatch(action)] == []


@pytest.mark.parametrize(
    ("text", "keys"),
    [(WORKFLOW, ["name", "on", "permissions", "concurrency", "jobs"]),
     (ACTION, ["name", "description", "inputs", "outputs", "runs"])],
    ids=["workflow", "action"],
)  # fmt: skip
def test_it_is_yaml_of_the_plain_kind(text: str, keys: list[str]) -> None:
    """Two blanks a level, no tabs, and every expression closed."""
    assert "\t" not in text
    lines = [line for line in text.splitlines() if line.strip()]
    assert [line for line in lines if (len(line) - len(line.lstrip())) % 2] == []
    assert [line for line in lines if line.count("${{") != line.count("}}")] == []
    assert [line.split(":")[0] for line in lines if line[0] not in " #"] == keys


def test_what_the_workflow_gives_the_action_takes() -> None:
    given = re.findall(r"^ {10}(\w+):", WORKFLOW.partition("uses: ./")[2].partition("- name")[0],
                       re.MULTILINE)  # fmt: skip
    taken = re.findall(r"^ {2}(\w+):$", ACTION.partition("inputs:")[2].partition("outputs:")[0],
                       re.MULTILINE)  # fmt: skip
    assert given == ["config", "baseline", "name"]
    assert set(given) <= set(taken)
    (output,) = re.findall(r"steps\.sweep\.outputs\.(\w+)", WORKFLOW)
    assert f"\n  {output}:\n" in ACTION


def test_the_history_survives_a_regression() -> None:
    steps = re.split(r"\n\n? {6}- ", WORKFLOW)
    after = [step for step in steps if "history" in step and "restore" not in step]
    assert len(after) == 3
    assert all("!cancelled()" in step for step in after)
