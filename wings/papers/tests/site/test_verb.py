"""The verb ``site``: where the site goes, exit codes, and the experiment that it shows."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from firstflight.cli.main import main
from testbed.base import places
from testbed.kernel.build.pin import pins
from tests.analysis.verdicts.compare.test_kernels import OFF
from tests.hallway import make_services
from wings.papers.tests.site.runs import load_once


def test_the_site_is_named_by_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = load_once(tmp_path / "run", "6.1", OFF, 1000.0)
    monkeypatch.chdir(tmp_path)
    assert main(["site", str(run)], make_services(tmp_path)) == 0
    assert capsys.readouterr().out.startswith("run-site/index.html: 1 kernel, 1 cell, 0 promises, ")
    assert (tmp_path / "run-site" / "index.html").is_file()


def test_bad_input_is_said_at_once_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_once(tmp_path / "run", "6.1", OFF, 1000.0)
    words = ["site", str(run), str(tmp_path / "none"), "-o", str(run)]
    words += ["--steps", str(tmp_path / "steps.toml")]
    assert main(words, make_services(tmp_path)) == 2
    said = capsys.readouterr().err
    assert f"{run} is there and is no empty folder" in said
    assert str(tmp_path / "none") in said
    assert f"cannot read {tmp_path / 'steps.toml'}: No such file or directory" in said


def test_the_releases_are_all_that_are_pinned() -> None:
    document = tomllib.loads((places.CONFIGS / "linux-releases.toml").read_text())
    assert set(document["kernel"]["versions"]) == set(pins())
