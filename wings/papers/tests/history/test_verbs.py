"""``history``: what it remembers, of which run and against which baseline, and where."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli.main import main
from firstflight.cli.services import Services
from testbed.experiment.lanes import write_lanes
from tests.analysis.nights import night
from tests.cli.test_baseline import WHY, update, written
from tests.hallway import make_services


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return make_services(tmp_path)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return night(tmp_path / "one", 1)


def test_history_takes_the_verdict_against_the_experiments_baseline(
    services: Services, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "add", str(results)], services) == 0
    assert "no baseline" in capsys.readouterr().out
    update(services, results, "--reason", WHY)
    slower = night(services.results.parent / "two", 2, 1.3)
    assert main(["history", "add", str(results), str(slower)], services) == 0
    said = capsys.readouterr().out
    assert "brought up to date; same against the baseline" in said
    assert "added; different against the baseline" in said
    assert main(["history", "list", "--json"], services) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [run["verdict"] for run in runs] == ["same", "different"]
    assert main(["history", "list"], services) == 0
    heading, _, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["run,", "UTC", "experiment", "kernel", "verdict", "git"]
    first, second = (line.split() for line in lines)
    assert first[:-1] == ["2026-11-01", "02:17:00", "small", "virtual", "7.3", "same"]
    assert second[:-1] == ["2026-11-02", "02:17:00", "small", "virtual", "7.3", "different"]
    assert main(["history", "page"], services) == 0
    assert (services.results / "history.html").read_text().startswith("<!DOCTYPE html>")


def test_the_page_is_by_the_metric_asked_for(services: Services, tmp_path: Path) -> None:
    assert main(["history", "add", str(night(tmp_path / "seen", 1, seen=True))], services) == 0
    assert main(["history", "page", "--metric", "lcp_ms"], services) == 0
    assert "<h1>Largest contentful paints" in (services.results / "history.html").read_text()


def test_each_lane_is_remembered_for_itself(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both"
    night(both / "7.3", 1)
    night(both / "6.1", 1, 1.5, version="6.1")
    write_lanes(both, ("7.3", "6.1"))
    assert main(["history", "add", str(both)], services) == 0
    capsys.readouterr()
    assert main(["history", "list"], services) == 0
    lanes = [line.split()[2:5] for line in capsys.readouterr().out.splitlines()[2:]]
    assert sorted(lanes) == [["small", "virtual", "6.1"], ["small", "virtual", "7.3"]]
    assert update(services, both, "--reason", WHY) == 2
    assert update(services, both / "6.1", "--reason", WHY, "--name", "small-6.1") == 0
    assert written(services, "small-6.1")


def test_history_without_runs(services: Services, tmp_path: Path) -> None:
    assert main(["history", "list"], services) == 2
    assert main(["history", "page"], services) == 2
    assert main(["history", "add"], services) == 2
    assert main(["history", "add", str(tmp_path / "absent")], services) == 2
    assert not (services.results / "history.sqlite").exists()


def test_history_elsewhere(services: Services, results: Path, tmp_path: Path) -> None:
    database = tmp_path / "elsewhere.sqlite"
    elsewhere = replace(services, results=tmp_path / "nowhere")
    words = ["--history", str(database)]
    assert main(["history", "add", str(results), *words], elsewhere) == 0
    page = tmp_path / "page.html"
    assert main(["history", "page", "-o", str(page), *words], elsewhere) == 0
    assert page.is_file()
    assert not (tmp_path / "nowhere").exists()
