from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.main import main
from testbed.base import places
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from tests.hallway import ENVIRONMENT, make_services

QUICK = str(places.ROOT / "configs" / "quick.toml")
REPETITIONS = "6"


def run(base: Path, name: str, *words: str, code: int = 0, **named: Any) -> Path:
    folder = base / name
    # One at a time: a fake kernel's console names its slot.
    asked = ["run", QUICK, "-n", REPETITIONS, "--jobs", "1", *words, "-o", str(folder)]
    assert main(asked, make_services(base, **named)) == code
    return folder


def merge(base: Path, *folders: Path, out: str = "merged", code: int = 0) -> Path:
    words = ["merge", *map(str, folders), "-o", str(base / out)]
    assert main(words, make_services(base)) == code
    return base / out


def contents(folder: Path) -> dict[str, bytes]:
    kept = [folder / "records.jsonl", *(folder / "trials").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def test_merged_parts_are_what_one_machine_would_have_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [run(tmp_path, f"{k}", "--shard", f"{k}/5", "--overlap", "20%") for k in range(1, 6)]
    merged = merge(tmp_path, *parts[::-1])
    assert contents(merged) == contents(run(tmp_path, "alone"))
    assert "5 folders put together" in (said := capsys.readouterr().err)
    assert "5 trials in more than one of them, equal to the bit" in said
    manifest, alone = load_manifest(merged), load_manifest(tmp_path / "alone")
    assert (manifest.trials, manifest.shard) == (alone.trials, None)
    assert [each.shard for each in manifest.merged] == [f"{k}/5" for k in (5, 4, 3, 2, 1)]
    assert sum(each.records for each in manifest.merged) == len(alone.trials) + 5
    assert len(read_records(merged)) == sum(1 for r in read_records(merged) if r.cost is not None)


def test_gaps_are_listed_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [run(tmp_path, f"{k}", "--shard", f"{k}/3") for k in (1, 3)]
    merged = merge(tmp_path, *parts, code=4)
    said = capsys.readouterr().err
    missing = set(load_manifest(merged).trials) - {r.trial_id for r in read_records(merged)}
    assert len(missing) == 4
    assert all(f"not run: {trial_id} " in said for trial_id in missing)
    assert main(["run", "--resume", str(merged), "--jobs", "1"], make_services(tmp_path)) == 0
    assert contents(merged) == contents(run(tmp_path, "alone"))


def test_a_part_goes_on_as_a_part(tmp_path: Path) -> None:
    part = run(tmp_path, "1", "--shard", "2/3")
    ids = [r.trial_id for r in read_records(part)]
    (part / "records.jsonl").write_text("")
    assert main(["run", "--resume", str(part)], make_services(tmp_path)) == 0
    assert [r.trial_id for r in read_records(part)] == ids


def test_attempts_of_several_folders_come_before_what_counts(tmp_path: Path) -> None:
    ids = load_manifest(run(tmp_path, "plan")).trials
    failed = run(tmp_path, "failed", code=4, plan={ids[0]: "failed", ids[1]: "unproven"})
    again = run(tmp_path, "again", code=1, plan={ids[1]: "unproven"})
    merged = merge(tmp_path, failed, again)
    records = [(r.trial_id, r.outcome, r.attempt) for r in read_records(merged)]
    assert records[:3] == [(ids[0], "failed", 1), (ids[0], "ok", 2), (ids[1], "unproven", 1)]
    assert len(records) == len(ids) + 1
    assert (merged / "trials" / f"{ids[0]}.attempt1").is_dir()


def test_another_environment_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Environment({"kernel.name": "other", "root": "1"}, ENVIRONMENT.pages)
    parts = [run(tmp_path, "1"), run(tmp_path, "2", environment=other)]
    capsys.readouterr()
    merged = merge(tmp_path, *parts, code=2)
    said = capsys.readouterr().err
    assert f"{parts[1]}: unequal environment: kernel.name: other then, fake now" in said
    assert "root: 1 then, absent now" in said
    assert not merged.exists()


def test_another_plan_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [run(tmp_path, "1"), run(tmp_path, "2", "--seed", "5", "--set", "rtt_ms=20")]
    capsys.readouterr()
    merge(tmp_path, *parts, code=2)
    said = capsys.readouterr().err
    assert f"{parts[1]}: unequal plan: seed is 5, and 0, in {parts[0]}" in said
    assert "unequal plan: 2 of its conditions are lacking, and 2 are others" in said


def edited(folder: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Change the last record of ``folder`` and return its trial's id."""
    path = folder / "records.jsonl"
    *lines, last = path.read_text().splitlines()
    record = json.loads(last)
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    path.write_text("\n".join([*lines, text]) + "\n")
    return str(record["trial_id"])


def test_a_machine_that_lies_is_found_by_the_overlap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lie(record: dict[str, Any]) -> None:
        record["load"]["plt_ms"] *= 1.01

    whole, liar = run(tmp_path, "1"), run(tmp_path, "2", "--shard", "1/3")
    trial_id = edited(liar, lie)
    merged = merge(tmp_path, whole, liar, code=1)
    said = capsys.readouterr().err
    assert f"trial {trial_id} is not equal in {whole} and {liar}: load.plt_ms: " in said
    assert not merged.exists()


def test_a_foreign_or_damaged_part_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(tmp_path, "1")
    for number, (change, complaint, code) in enumerate((
        ({"trial_id": "0" * 16}, "the plan has no trial 0000000000000000", 2),
        ({"environment": "f" * 16}, "ran in environment ffffffffffffffff", 2),
        ({"artefacts": {"console.log": "0" * 64}}, "console.log is not the file of its record", 1),
    )):  # fmt: skip
        part = tmp_path / f"part{number}"
        shutil.copytree(whole, part)
        edited(part, lambda record, change=change: record.update(change))  # type: ignore[misc]
        capsys.readouterr()
        merge(tmp_path, part, code=code)
        assert complaint in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


def test_lanes_are_merged_by_name(tmp_path: Path) -> None:
    versions = ("--set", 'kernel.versions=["7.3", "6.1"]')
    parts = [run(tmp_path, f"{k}", *versions, "--shard", f"{k}/2") for k in (1, 2)]
    merged = merge(tmp_path, *parts)
    alone = run(tmp_path, "alone", *versions)
    for lane in ("7.3", "6.1"):
        assert contents(merged / lane) == contents(alone / lane)
    assert (merged / "lanes.json").read_bytes() == (alone / "lanes.json").read_bytes()
    one = run(tmp_path, "one")
    merge(tmp_path, parts[0], one, out="mixed", code=2)


def test_no_place_and_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = run(tmp_path, "1")
    merge(tmp_path, whole, out="1", code=2)
    assert "is not empty" in capsys.readouterr().err
    merge(tmp_path, whole, tmp_path / "nowhere", code=2)
    assert "nowhere is not a results folder: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(("keep", "left"), [("none", 0), ("fragile", 1), ("all", 12)])
def test_captures_can_stay_out_and_their_digests_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str, left: int
) -> None:
    from testbed.kernel.run.interface import RawResult
    from tests import hallway

    ids = load_manifest(run(tmp_path, "plan")).trials
    from tests.fake_kernel import conclude

    def with_capture(trial: Any, raw: RawResult, out: Path, *rest: Any) -> Any:
        (out / "client.pcap").write_bytes(b"packets")
        return replace(conclude(trial, raw, out, *rest), artefacts={"client.pcap": "a" * 64})

    monkeypatch.setattr(hallway, "conclude", with_capture)
    folder = run(tmp_path, keep, "--keep", f"captures={keep}", code=1, plan={ids[3]: "unproven"})
    assert len(list(folder.rglob("client.pcap"))) == left
    assert {len(r.artefacts) for r in read_records(folder)} == {1}
    assert load_manifest(folder).keep_captures == keep


def test_what_can_not_be_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", QUICK, "--keep", "har=none"], make_services(tmp_path)) == 2
    assert "--keep har=none: write one of captures=none" in capsys.readouterr().err
