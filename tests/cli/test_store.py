from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.main import main
from testbed.base import places
from testbed.base.errors import ConfigurationError, StorageError
from testbed.kernel.run.interface import RawResult
from testbed.model import Trial
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from testbed.results.store import TrialStore, open_address
from tests.fake_kernel import FakeKernel, observe
from tests.hallway import ENVIRONMENT, make_services

QUICK = str(places.ROOT / "configs" / "quick.toml")
COUNT = 50


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRSTFLIGHT_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the trials that ran, as they begin."""
    begun: list[str] = []
    run = FakeKernel.run

    def watched(self: FakeKernel, trial: Trial, *rest: Any) -> RawResult:
        begun.append(trial.id)
        return run(self, trial, *rest)

    monkeypatch.setattr(FakeKernel, "run", watched)
    return begun


def run(base: Path, name: str, *words: str, code: int = 0, **named: Any) -> Path:
    asked = ["run", QUICK, "-n", str(COUNT // 2), "--jobs", "1", *words, "-o", str(base / name)]
    assert main(asked, make_services(base, **named)) == code
    return base / name


def contents(folder: Path) -> dict[str, bytes]:
    kept = [folder / "records.jsonl", *(folder / "trials").rglob("*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def entries(store: Path) -> list[Path]:
    return sorted(store.rglob("*.trial"))


def test_nothing_is_measured_twice(
    tmp_path: Path, store: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path, "first")
    assert len(entries(store)) == COUNT == len(ran)
    del ran[:]
    capsys.readouterr()
    second = run(tmp_path, "second", "--verify", "4%")
    out, said = capsys.readouterr()
    assert contents(second) == contents(first)
    assert len(ran) == 2
    assert f"50 of 50 trials from the store {store}" in said
    assert "2 of 2 trials run again: equal to the bit" in said
    assert out == "table of 50 records by plt_ms\n"
    stored = load_manifest(second).stored
    assert stored is not None
    assert (stored.trials, stored.again) == (50, 2)
    assert load_manifest(first).stored is None
    assert all(r.cost is None for r in read_records(second))


def test_what_is_missing_is_measured_after_the_check(
    tmp_path: Path, store: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    alone = run(tmp_path, "alone", "--no-store")
    assert entries(store) == []
    run(tmp_path, "part", "--shard", "1/2")
    before = {path.stem for path in entries(store)}
    del ran[:]
    whole = run(tmp_path, "whole", "--verify", "8%")
    assert contents(whole) == contents(alone)
    assert len(ran) == 2 + COUNT // 2
    assert set(ran[:2]) <= before
    assert not before & set(ran[2:])
    assert "25 of 50 trials from the store" in (said := capsys.readouterr().err)
    assert ", 2 of them run again: equal" in said
    assert len(entries(store)) == COUNT


def test_no_store_measures_all_and_another_environment_finds_nothing(
    tmp_path: Path, ran: list[str]
) -> None:
    run(tmp_path, "first")
    for name, words, named in (
        ("none", ("--no-store",), {}),
        ("other", (), {"environment": Environment({"kernel.name": "other"}, {})}),
    ):
        del ran[:]
        run(tmp_path, name, *words, **named)  # type: ignore[arg-type]
        assert len(ran) == COUNT


def test_only_what_is_ok_is_kept(tmp_path: Path, store: Path) -> None:
    ids = load_manifest(run(tmp_path, "plan", "--no-store")).trials
    plan = {ids[0]: "failed", ids[1]: "unproven", ids[2]: "timeout", ids[3]: "lab_mismatch"}
    run(tmp_path, "first", code=4, plan=plan)
    assert {path.stem for path in entries(store)} == set(ids[4:])


def test_damaged_foreign_and_truncated_entries_are_left_out_and_mended(
    tmp_path: Path, store: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path, "first")
    poisoned, truncated, foreign, empty, *_ = entries(store)
    poisoned.write_bytes(poisoned.read_bytes()[:-5] + b"?????")
    truncated.write_bytes(truncated.read_bytes()[:200])
    foreign.write_bytes(entries(store)[-1].read_bytes())
    empty.write_bytes(b"")
    (store / "somebody's.txt").write_text("notes")
    wrong = {path.stem for path in (poisoned, truncated, foreign, empty)}
    del ran[:]
    capsys.readouterr()
    assert main(["store", "verify"], make_services(tmp_path)) == 1
    assert "50 entries read, 4 damaged" in capsys.readouterr().out
    second = run(tmp_path, "second", "--verify", "0")
    assert set(ran) == wrong
    said = capsys.readouterr().err
    assert said.count("left out: ") == 4
    assert "its content is not what its first line says" in said
    assert contents(second) == contents(first)
    assert main(["store", "verify"], make_services(tmp_path)) == 0


def test_a_store_that_lies_is_found_and_stops_everything(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = observe

    def lie(trial: Trial, outcome: Any = "ok") -> dict[str, Any]:
        seen = honest(trial, outcome)
        seen["load"]["plt_ms"] *= 1.01
        return seen

    monkeypatch.setattr("tests.fake_kernel.observe", lie)
    run(tmp_path, "liar", "--shard", "1/2")
    monkeypatch.setattr("tests.fake_kernel.observe", honest)
    capsys.readouterr()
    out = run(tmp_path, "victim", code=1)  # parts are missing: the check comes first
    said = capsys.readouterr().err
    assert "is not what the store" in said
    assert "here and there: load.plt_ms: " in said
    assert "run with --no-store" in said
    assert read_records(out) == ()
    run(tmp_path, "part", "--shard", "1/2", code=1)  # all are there: the check comes last
    assert "is not to be trusted" in capsys.readouterr().err


def test_a_check_that_fails_by_itself_accuses_nobody(tmp_path: Path) -> None:
    ids = load_manifest(run(tmp_path, "first")).trials
    again = run(tmp_path, "again", "--verify", "100%", plan=dict.fromkeys(ids, "timeout"))
    stored = load_manifest(again).stored
    assert stored is not None
    assert (stored.trials, stored.again) == (50, 0)


def test_a_resumed_run_counts_both_parts(tmp_path: Path) -> None:
    folder = run(tmp_path, "first")
    part = run(tmp_path, "part", "--shard", "1/2", "--verify", "0")
    lines = (part / "records.jsonl").read_bytes().splitlines(keepends=True)
    (part / "records.jsonl").write_bytes(b"".join(lines[:5]))
    assert main(["run", "--resume", str(part), "--verify", "5%"], make_services(tmp_path)) == 0
    stored = load_manifest(part).stored
    assert stored is not None
    assert (stored.trials, stored.again) == (25 + 20, 1)
    assert set(contents(part)) < set(contents(folder))


def test_many_write_at_once(tmp_path: Path, store: Path) -> None:
    opened = open_address(str(store))
    folder = run(tmp_path, "first", "--no-store")
    records = read_records(folder)
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for record in records:
                opened.write(record, folder / "trials" / record.trial_id)
                assert opened.read(record.trial_id, record.environment) is not None
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(entries(store)) == COUNT
    assert sorted(path for path in store.rglob("*") if path.is_file()) == entries(store)


def test_list_and_prune(tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services = make_services(tmp_path)
    assert main(["store", "list"], services) == 0
    assert "0 environments" in capsys.readouterr().out
    run(tmp_path, "first")
    run(tmp_path, "other", environment=Environment({"kernel.name": "other"}, {}))
    old = datetime.now(UTC) - timedelta(days=40)
    for path in entries(store)[:10]:
        os.utime(path, (old.timestamp(), old.timestamp()))
    capsys.readouterr()
    assert main(["store", "list", "--json"], services) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["trials"] for row in rows] == [COUNT, COUNT]
    size = sum(path.stat().st_size for path in entries(store))
    assert sum(row["bytes"] for row in rows) == size
    assert main(["store", "list", "--environment", ENVIRONMENT.id], services) == 0
    assert capsys.readouterr().out.startswith(f"{ENVIRONMENT.id}       50 trials")
    now = make_services(tmp_path)
    object.__setattr__(now, "now", lambda: datetime.now(UTC))
    assert main(["store", "prune", "--older-than", "30d", "--dry-run"], now) == 0
    assert len(entries(store)) == 2 * COUNT
    assert main(["store", "prune", "--older-than", "30d"], now) == 0
    assert "10 of 100 entries removed" in capsys.readouterr().out
    assert main(["store", "prune", "--most", f"{size / 2048:.2f}K"], now) == 0
    assert COUNT - 15 < len(entries(store)) <= COUNT + 5
    assert main(["store", "prune", "--environment", ENVIRONMENT.id], now) == 0
    assert {path.parent.name for path in entries(store)} <= {
        Environment({"kernel.name": "other"}, {}).id
    }


def test_bad_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services = make_services(tmp_path)
    assert main(["store", "prune"], services) == 2
    assert "say what to remove" in capsys.readouterr().err
    assert main(["store", "prune", "--older-than", "x", "--most", "y"], services) == 2
    said = capsys.readouterr().err
    assert "--older-than x: write it in days" in said
    assert "--most y: write it as a size" in said
    assert main(["run", QUICK, "--verify", "many"], services) == 2
    assert "--verify many: write it as a share" in capsys.readouterr().err


def test_a_store_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_STORE", "nowhere://bucket/folder")
    run(tmp_path, "first", code=2)
    assert "nowhere:// is no place for a store" in capsys.readouterr().err
    (tmp_path / "file").touch()
    monkeypatch.setenv("FIRSTFLIGHT_STORE", str(tmp_path / "file"))
    run(tmp_path, "second", code=4)
    said = capsys.readouterr().err
    assert f"cannot write the store {tmp_path / 'file'}" in said
    assert "or run with --no-store" in said
    monkeypatch.setenv("FIRSTFLIGHT_STORE", "none")
    assert main(["store", "list"], make_services(tmp_path)) == 2
    assert "there is no store" in capsys.readouterr().err


def test_the_store_is_in_the_cache_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIRSTFLIGHT_STORE")
    run(tmp_path, "first")
    assert len(entries(tmp_path / "cache" / "store")) == COUNT


def test_a_store_that_nobody_asked_for_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FIRSTFLIGHT_STORE")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "store").touch()
    run(tmp_path, "first")
    assert capsys.readouterr().err.count("results are not kept for later runs: cannot write") == 1


def test_a_file_system_that_fails_is_told_alike(tmp_path: Path) -> None:
    class Broken:
        protocol = "memory"

        def find(self, place: str, detail: bool) -> dict[str, Any]:
            raise RuntimeError("the wire is cut")

    broken = TrialStore("memory://x", Broken(), "/x")
    with pytest.raises(StorageError, match="cannot list the store memory://x: the wire is cut"):
        broken.list_trials("0" * 16)
    with pytest.raises(ConfigurationError):
        open_address("x y://z")


def test_a_store_of_objects_holds_them_too(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_STORE", "memory://bucket/results")
    first = run(tmp_path, "first")
    del ran[:]
    second = run(tmp_path, "second", "--verify", "2%")
    assert len(ran) == 1
    assert contents(second) == contents(first)
