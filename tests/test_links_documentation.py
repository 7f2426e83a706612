"""Blocks of documents that are experiment files load, and so does each translation of links.md."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from testbed.base.places import ROOT
from testbed.experiment.config import load_experiment
from testbed.experiment.profiles import read_profile
from testbed.model import Condition
from testbed.runner.prepare import read_catalogue

TEXT = (ROOT / "docs" / "links.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return [
        textwrap.dedent(block)
        for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
        if "./run.sh" not in block
    ]


BLOCKS = blocks(TEXT)
OPENINGS = blocks((ROOT / "docs" / "zero-rtt.md").read_text(encoding="utf-8"))
ROWS = {
    row: re.findall(r"`(link\.[a-z_]+ = [^`]+)`", row)
    for row in TEXT.splitlines()
    if row[:3] == "| `"
}
HEAD = 'page = "wikipedia"\nclient = "graph"\n'


@pytest.mark.parametrize("block", BLOCKS, ids=lambda text: text.splitlines()[-1])
def test_a_block_works_when_it_is_pasted(tmp_path: Path, block: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(block)
    if block.startswith("[link]"):
        assert read_profile(path).values
    else:
        assert len(block.splitlines()) <= 4
        experiment = load_experiment(path, read_catalogue())
        assert all(isinstance(each, Condition) for each in experiment.conditions)


@pytest.mark.parametrize("block", OPENINGS, ids=lambda text: text.splitlines()[-1])
def test_so_does_one_of_zero_round_trips(tmp_path: Path, block: str) -> None:
    (tmp_path / "mine.toml").write_text(block)
    assert load_experiment(tmp_path / "mine.toml", read_catalogue()).conditions_as(Condition)


def test_there_are_blocks_of_each_section() -> None:
    assert len(BLOCKS) >= TEXT.count("\n## ")


@pytest.mark.parametrize(
    "row", [row for row, knobs in ROWS.items() if knobs], ids=lambda r: r[2:30]
)
def test_a_translation_is_a_link(tmp_path: Path, row: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + "\n".join(ROWS[row]))
    for name in ("up.trace", "down.trace"):
        (tmp_path / name).write_text("1\n2\n3\n")
    (condition,) = load_experiment(path, read_catalogue()).conditions_as(Condition)
    for name, value in tomllib.loads("\n".join(ROWS[row]))["link"].items():
        assert getattr(condition.link, name) == value


def test_every_option_of_mahimahis_is_translated() -> None:
    said = " ".join(ROWS)
    options = ("mm-delay", "mm-loss", "mm-link", "infinite", "droptail", "drophead", "codel", "pie")
    assert [option for option in options if option not in said] == []
