"""A run held against the committed results: to the bit, and what differs by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.records.results import read_results
from analysis.verdicts.committed import BASELINES, hold_against_committed
from firstflight.cli.main import main
from firstflight.cli.reports import Reports
from tests.hallway import make_services

TABLE_1 = BASELINES / "paper-table1"
LOADS = 144
"""24 cells of six seeds."""
CHROMIUM = "package.chromium-headless-shell"
ANOTHER = "feedfeedfeedfeed"
Record = dict[str, Any]


def run_elsewhere(
    folder: Path,
    parts: Mapping[str, str] | None = None,
    change: Callable[[list[Record]], list[Record]] = lambda records: records,
) -> Path:
    """Table 1 as a machine prints it that is another in all facts, and in ``parts``."""
    manifest = json.loads((TABLE_1 / "manifest.json").read_text())
    records = [json.loads(line) for line in (TABLE_1 / "records.jsonl").read_text().splitlines()]
    environment = manifest["environment"]
    environment["facts"] = {"git_revision": "ab" * 20, "git_dirty": "yes", "processor": "odd"}
    if parts:
        environment["parts"] |= parts
        environment["id"] = ANOTHER
        records = [record | {"environment": ANOTHER} for record in records]
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    lines = (json.dumps(record) + "\n" for record in change(records))
    (folder / "records.jsonl").write_text("".join(lines))
    return folder


def compare(base: Path, new: Path, tmp_path: Path) -> int:
    return main(["compare", str(base), str(new)], make_services(tmp_path))


def test_the_same_packages_give_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_elsewhere(tmp_path / "run")
    assert hold_against_committed(read_results(run)) == (
        "Same to the bit as the committed results in analysis/baselines/paper-table1: "
        f"{LOADS} loads.\n"
    )
    assert "Same to the bit" in Reports().render(run)
    assert compare(TABLE_1, run, tmp_path) == 0
    assert "SAME: 24 cells, 24 same." in capsys.readouterr().out


@pytest.mark.parametrize("part", [CHROMIUM, "code.bundle", "kernel.config_sha256"])
def test_what_differs_is_named(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_elsewhere(tmp_path / "run", {part: "157.0.1-1~deb12u1"})
    said = hold_against_committed(read_results(run)).splitlines()
    assert len(said) == 3
    assert said[0].startswith(f"{LOADS} of {LOADS} loads are the same to the bit")
    assert said[1].startswith(f"  {part}: ")
    assert said[1].endswith(" there, 157.0.1-1~deb12u1 here")
    assert "./run.sh compare analysis/baselines/paper-table1" in said[2]
    assert compare(TABLE_1, run, tmp_path) == 0
    told = capsys.readouterr().out
    assert told.count("Under test: ") == 1 and f"Under test: {part} (" in told
    assert "24 cells, 24 within the spread of draws" in told


def test_what_is_too_long_to_show_is_named_all_the_same(tmp_path: Path) -> None:
    patches = json.loads((TABLE_1 / "manifest.json").read_text())["environment"]["parts"]
    longer = {"kernel.patches": patches["kernel.patches"] + " and one more"}
    run = run_elsewhere(tmp_path / "run", longer)
    said = hold_against_committed(read_results(run)).splitlines()
    assert said[1] == "  kernel.patches: differs"


def test_a_changed_bit_is_never_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def later(records: list[Record]) -> list[Record]:
        records[3]["load"]["plt_ms"] += 0.001
        records[5]["artefacts"]["client.pcap"] = "00" * 32
        return records

    run = run_elsewhere(tmp_path / "run", change=later)
    said = hold_against_committed(read_results(run))
    assert said.startswith(f"2 of {LOADS} loads differ from the committed results")
    assert "determinism is broken" in said
    assert compare(TABLE_1, run, tmp_path) == 1
    assert "DIFFERENT: 24 cells" in capsys.readouterr().out


def test_only_what_is_committed_is_held_against_it(tmp_path: Path) -> None:
    some = run_elsewhere(tmp_path / "some", change=lambda records: records[:6])
    assert "paper-table1: 6 loads." in hold_against_committed(read_results(some))

    def failed(records: list[Record]) -> list[Record]:
        return [record | {"outcome": "failed"} for record in records]

    none = run_elsewhere(tmp_path / "none", change=failed)
    assert hold_against_committed(read_results(none)) == ""


def test_an_experiment_without_a_baseline_says_nothing() -> None:
    graph = BASELINES.parent / "samples"
    assert hold_against_committed(read_results(graph / "paper-table1")) == ""
    assert hold_against_committed(read_results(graph / "tum-website")) == ""
