"""``compare``: options in, text or JSON out, and the verdict's exit code."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.records.kind import find_metric
from analysis.verdicts.compare.comparison import CompareOptions
from firstflight.cli import compare
from firstflight.cli.main import main
from testbed.base.errors import EXIT_INCONCLUSIVE
from tests.hallway import make_services


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the comparison was asked for; it finds that there is too little to say."""
    asked: list[Any] = []

    def compare_results(base: Path, new: Path, options: CompareOptions) -> SimpleNamespace:
        asked.extend((base, new, options))
        return SimpleNamespace(exit_code=EXIT_INCONCLUSIVE)

    def write_files(_found: object, *files: Path | None) -> None:
        asked.extend(files)

    monkeypatch.setattr(compare, "compare_results", compare_results)
    monkeypatch.setattr(compare, "write_files", write_files)
    monkeypatch.setattr(compare, "render_text", lambda _found, width: f"{width} columns\n\n")
    monkeypatch.setattr(compare, "describe_comparison", lambda _found: {"cells": []})
    return asked


def test_text_and_the_exit_code(
    tmp_path: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--across", "code, kernel"]
    assert main(words, make_services(tmp_path)) == 5
    assert capsys.readouterr().out == "100 columns\n"
    options = CompareOptions(("code", "kernel"), 0.05, None, allow_faster=False)
    assert asked == [tmp_path / "a", tmp_path / "b", options, None, None, None]


def test_every_option_arrives(
    tmp_path: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "a", "b", "--json", "--across", "all,tfo", "--across", "pages", "--alpha",
             "0.01", "--min-effect", "2.5", "--allow-faster", "--metric", "cls", "--junit", "j.xml",
             "--markdown", "m.md", "--html", "p.html"]  # fmt: skip
    assert main(words, make_services(tmp_path)) == 5
    assert json.loads(capsys.readouterr().out) == {"cells": []}
    options = CompareOptions(
        ("all", "tfo", "pages"), 0.01, 2.5, allow_faster=True, metric=find_metric("cls")
    )
    assert asked == [Path("a"), Path("b"), options, Path("j.xml"), Path("m.md"), Path("p.html")]


def test_two_folders_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path)], make_services(tmp_path)) == 2
    assert "NEW" in capsys.readouterr().err
