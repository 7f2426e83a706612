"""``baseline``: what it writes, what it refuses, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.cli.main import main
from firstflight.cli.services import Services
from tests.analysis.nights import night
from tests.hallway import make_services

WHY = "answers start sooner since the new nginx"


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return make_services(tmp_path)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return night(tmp_path / "one", 1)


def update(services: Services, folder: Path, *words: str) -> int:
    return main(["baseline", "update", str(folder), *words], services)


def written(services: Services, name: str = "small") -> set[str]:
    folder = services.baselines / name
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def test_a_baseline_is_written_with_its_reason(
    services: Services, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert update(services, results, "--reason", WHY) == 0
    assert written(services) == {"manifest.json", "records.jsonl", "REASONS.md"}
    assert "no such baseline before" in capsys.readouterr().out
    slower = night(services.results.parent / "two", 2, 1.3)
    assert update(services, slower, "--reason", "the\nlink is   slower now") == 0
    assert "different" in capsys.readouterr().out
    said = (services.baselines / "small" / "REASONS.md").read_text()
    assert WHY not in said
    assert "the link is slower now" in said
    assert said.count("\n- 20") == 1
    assert said.endswith("\n")
    assert main(["baseline", "list"], services) == 0
    assert capsys.readouterr().out.startswith("small: 8 trials in 8 cells of 2026-11-02")
    assert main(["baseline", "show", "small"], services) == 0
    assert "the link is slower now" in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--reason", ""), ("--reason", "because")])
def test_no_baseline_without_a_reason(
    services: Services, results: Path, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    assert update(services, results, *words) == 2
    assert written(services) == set()


def test_on_a_terminal_it_asks(
    services: Services, results: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked: list[str] = []

    def answer(text: str) -> str:
        asked.append(text)
        return WHY

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.prompt", answer)
    assert update(services, results) == 0
    assert asked == ["Why shall the baseline be this from now on"]
    assert WHY in (services.baselines / "small" / "REASONS.md").read_text()


def test_a_refusal_leaves_the_baseline_as_it_was(services: Services, results: Path) -> None:
    update(services, results, "--reason", WHY)
    before = {p.name: p.read_bytes() for p in (services.baselines / "small").iterdir()}
    unproven = night(services.results.parent / "two", 2, failed=3)
    assert update(services, unproven, "--reason", "nobody looks anyway") == 2
    assert {p.name: p.read_bytes() for p in (services.baselines / "small").iterdir()} == before
    assert [path.name for path in services.baselines.iterdir()] == ["small"]


def test_a_folder_of_something_else_is_never_replaced(services: Services, results: Path) -> None:
    precious = services.results.parent / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("three years")
    assert update(services, results, "--reason", WHY, "--to", str(precious)) == 2
    assert (precious / "thesis.txt").read_text() == "three years"
    assert update(services, results, "--reason", WHY, "--to", str(precious / "data")) == 0
    assert (precious / "data" / "records.jsonl").is_file()


@pytest.mark.parametrize("name", ["../small", "a/b", "", ".hidden"])
def test_a_name_is_a_name(services: Services, results: Path, name: str) -> None:
    assert update(services, results, "--reason", WHY, "--name", name) == 2
    assert not services.baselines.exists()


def test_show_of_none(services: Services) -> None:
    assert main(["baseline", "show", "small"], services) == 2
    assert main(["baseline", "list"], services) == 0
