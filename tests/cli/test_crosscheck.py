"""``crosscheck``: two folders in, a table or JSON out, and the verdict's exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.cli.main import main
from tests.hallway import make_doors


def test_text_json_and_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["crosscheck", str(tmp_path / "a"), str(tmp_path / "b")]
    (tmp_path / "b").mkdir()
    assert main(words, make_doors(tmp_path, crossed=5)) == 5
    assert capsys.readouterr().out == "a and b in b\n"
    assert main([*words, "--json"], make_doors(tmp_path, crossed=5)) == 5
    assert json.loads(capsys.readouterr().out) == {"cells": []}


def test_two_folders_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crosscheck", str(tmp_path)], make_doors(tmp_path)) == 2
    assert "OTHER" in capsys.readouterr().err
