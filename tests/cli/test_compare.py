"""``compare``: options in, text or JSON out, and the verdict's exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.cli.main import main
from tests.hallway import make_doors


def test_text_and_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--across", "code, kernel"]
    assert main(words, make_doors(tmp_path)) == 5
    assert capsys.readouterr().out == "a and b across code, kernel\n"


def test_every_option_arrives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "compare", "a", "b", "--json", "--across", "all,tfo", "--across", "pages", "--alpha",
        "0.01", "--min-effect", "2.5", "--allow-faster", "--junit", "j.xml", "--markdown", "m.md",
    ]  # fmt: skip
    assert main(words, make_doors(tmp_path)) == 5
    assert json.loads(capsys.readouterr().out) == {
        "across": ["all", "tfo", "pages"],
        "alpha": 0.01,
        "min_effect_pct": 2.5,
        "allow_faster": True,
        "junit": "j.xml",
        "markdown": "m.md",
    }


def test_two_folders_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path)], make_doors(tmp_path)) == 2
    assert "NEW" in capsys.readouterr().err
