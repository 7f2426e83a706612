"""The artifact's papers: valid, and saying what the program and the committed results say."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analysis.status import ENDINGS, STATUS, render_status
from firstflight.usage import answer, parse_reference
from testbed.base import proc
from testbed.base.errors import ConfigurationError
from testbed.base.places import ROOT, describe_version

SCHEMA = json.loads((Path(__file__).parent / "data" / "cff-1.2.0.json").read_text())
PAPERS = ("INSTALL.md", "README.md", "REQUIREMENTS.md", "STATUS.md")
SECTIONS = parse_reference((ROOT / "docs" / "command-line.md").read_text())


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    """CITATION.cff as data."""
    tools = os.environ.get("FIRSTFLIGHT_ARTIFACT")
    if tools is None:
        pytest.skip("its Python environment was not set up: run `make test`")
    read = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"
    text = (ROOT / "CITATION.cff").read_text()
    done = proc.run((f"{tools}/bin/python", "-c", read), stdin=text, env={"PATH": os.defpath})
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_citation_is_valid(citation: dict[str, Any]) -> None:
    checker = jsonschema.Draft7Validator(SCHEMA)
    assert [error.message for error in checker.iter_errors(citation)] == []
    assert list(checker.iter_errors({**citation, "licence": "MIT"})) != []
    assert list(checker.iter_errors({**citation, "authors": []})) != []


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
    assert render_status(text) == text, "make readme writes them anew"


def test_an_ending_of_other_results_is_found(tmp_path: Path) -> None:
    for name in ("baselines", "samples/scenarios"):
        shutil.copytree(ROOT / "analysis" / name, tmp_path / "analysis" / name)
    text = STATUS.read_text(encoding="utf-8")
    assert render_status(text, tmp_path) == text
    records = tmp_path / "analysis" / "baselines" / "nightly" / "records.jsonl"
    records.write_text(records.read_text().split("\n", 1)[1])
    assert render_status(text, tmp_path) != text


def test_every_ending_is_there_once() -> None:
    text = STATUS.read_text(encoding="utf-8")
    for name in ENDINGS:
        with pytest.raises(ConfigurationError, match="endings"):
            render_status(text.replace(f"<!-- prints: {name} -->", ""))


def test_every_command_of_the_papers_may_go_on() -> None:
    for paper in PAPERS:
        text = re.sub(r"#.*|&&.*", "", (ROOT / paper).read_text())
        commands = re.findall(r"(?:^|[\s(`])\./run\.sh ([^\n`;)]+)", text)
        for command in commands:
            found = answer(command.replace("\\\n", " ").split(), SECTIONS)
            assert found.code == 0, (paper, command, found.text)


def test_every_badge_is_spoken_of() -> None:
    text = STATUS.read_text()
    for badge in ("Available", "Functional", "Reusable", "Results reproduced"):
        assert f"\n**{badge}.** " in text
