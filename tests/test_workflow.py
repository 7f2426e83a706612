"""The ready workflow: every verb, option and path that it names exists, every action is pinned."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from firstflight.cli import main as cli

ROOT = Path(__file__).parent.parent
WORKFLOW = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
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
    assert len(found) >= 4
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
    used = re.findall(r"uses: (\S+)", WORKFLOW)
    assert len(used) >= 5
    shape = re.compile(
        r"actions/(checkout|cache|cache/restore|cache/save|upload-artifact)@[0-9a-f]{40}"
    )
    assert [action for action in used if not shape.fullmatch(action)] == []


def test_it_is_yaml_of_the_plain_kind() -> None:
    """Two blanks a level, no tabs, and every expression closed."""
    assert "\t" not in WORKFLOW
    lines = [line for line in WORKFLOW.splitlines() if line.strip()]
    assert [line for line in lines if (len(line) - len(line.lstrip())) % 2] == []
    assert [line for line in lines if line.count("${{") != line.count("}}")] == []
    top = [line.split(":")[0] for line in lines if line[0] not in " #"]
    assert top == ["name", "on", "permissions", "concurrency", "jobs"]


def test_the_history_survives_a_regression() -> None:
    steps = re.split(r"\n\n? {6}- ", WORKFLOW)
    after = [step for step in steps if "history" in step and "restore" not in step]
    assert len(after) == 2
    assert all("!cancelled()" in step for step in after)
