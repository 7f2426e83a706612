"""The artifact's papers: valid, and saying what the program and the committed results say."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from analysis.readme import STATUS, list_pages, render_page
from firstflight.usage import answer, read_verbs
from testbed.base import proc
from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT, describe_version

PAPERS = ("INSTALL.md", "README.md", "REQUIREMENTS.md", "STATUS.md")
SECTIONS = read_verbs()


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    """CITATION.cff as data."""
    found: dict[str, Any] = YAML(typ="safe").load(ROOT / "CITATION.cff")
    return found


def check_citation(path: Path) -> int:
    """Hold a file against the published schema of citation files; return the tool's status."""
    tool = str(Path(sys.executable).parent / "check-jsonschema")
    argv = (tool, "--builtin-schema", "vendor.citation-file-format", str(path))
    return proc.run(argv, check=False).returncode


def test_the_citation_is_valid(citation: dict[str, Any], tmp_path: Path) -> None:
    assert check_citation(ROOT / "CITATION.cff") == 0
    for wrong in ({**citation, "licence": "MIT"}, {**citation, "authors": []}):
        (tmp_path / "CITATION.cff").write_text(json.dumps(wrong, default=str))
        assert check_citation(tmp_path / "CITATION.cff") == 1


def test_the_citation_says_what_the_project_says(citation: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert describe_version() == f"firstflight {citation['version']}"
    licence = (ROOT / "LICENSE").read_text()
    assert licence.startswith(f"{citation['license']} License")
    (author,) = citation["authors"]
    assert f"Copyright (c) 2026 {author['name']}" in licence


def test_the_endings_are_those_of_the_committed_results() -> None:
    text = STATUS.read_text(encoding="utf-8")
    assert render_page(STATUS, text) == text, "make readme writes them anew"


def test_an_ending_of_other_results_is_found(tmp_path: Path) -> None:
    for name in ("baselines", "samples/scenarios"):
        shutil.copytree(ROOT / "analysis" / name, tmp_path / "analysis" / name)
    text = STATUS.read_text(encoding="utf-8")
    assert render_page(STATUS, text, tmp_path) == text
    records = tmp_path / "analysis" / "baselines" / "nightly" / "records.jsonl"
    records.write_text(records.read_text().split("\n", 1)[1])
    assert render_page(STATUS, text, tmp_path) != text


def test_every_ending_is_there_once() -> None:
    text = STATUS.read_text(encoding="utf-8")
    for name in list_pages()[STATUS]:
        with pytest.raises(ConfigurationError, match=f"STATUS.md: the table {name} is"):
            render_page(STATUS, text.replace(f"<!-- prints: {name} -->", ""))


def test_every_command_of_the_papers_may_go_on() -> None:
    for paper in PAPERS:
        text = re.sub(r"#.*|&&.*", "", (ROOT / paper).read_text())
        commands = re.findall(r"(?:^|[\s(`])\./run\.sh ([^\n`;)]+)", text)
        for command in commands:
            found = answer(command.replace("\\\n", " ").split(), SECTIONS)
            assert found is None or found.code == 0, (paper, command, found)


def test_every_badge_is_spoken_of() -> None:
    text = STATUS.read_text()
    for badge in ("Available", "Functional", "Reusable", "Results reproduced"):
        assert f"\n**{badge}.** " in text
