"""Results are judged again: whoever edits a number of a results folder is told which."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.records.results import read_results
from firstflight.cli.main import main
from testbed.results.folder import read_records
from testbed.results.lazy import read_lazy_records
from testbed.results.seal import is_judged_here, write_seal
from tests.hallway import make_services

QUICK = "configs/quick.toml"
Edit = Callable[[Any], object]


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The results of a run."""
    assert main(["run", QUICK, "-o", str(tmp_path / "done"), "--no-store"],
                make_services(tmp_path)) == 0  # fmt: skip
    return tmp_path / "done"


def edit(path: Path, change: Edit) -> None:
    """Change the first line of a file of JSON, or all of it."""
    lines = path.read_text().splitlines(keepends=True) if path.suffix == ".jsonl" else None
    document = json.loads(lines[0] if lines else path.read_text())
    change(document)
    text = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    path.write_text(text if lines is None else "".join([text, *lines[1:]]))


def verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of ``verify``, and what it says."""
    capsys.readouterr()
    code = main(["verify", str(folder)], make_services(folder.parent))
    return code, capsys.readouterr().err


def test_an_honest_run_is_verified(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_judged_here(done)
    assert verified(done, capsys) == (0, f"{done}: 2 of 2 records judged again\n")
    assert read_results(done).judged_here


def _halve(document: Any) -> None:
    document["load"]["plt_ms"] *= 0.5


def _both(document: Any) -> None:
    for name in ("measured", "theory"):
        document["lab"]["measurements"][0][name] *= 2


@pytest.mark.parametrize(("name", "change", "said"), [
    ("records.jsonl", _halve, "load.plt_ms"),
    ("records.jsonl", _both, "lab.measurements[0].theory"),
    ("records.jsonl", lambda d: d["load"]["requests"][0].update(end_ms=1.5), "requests[0].end_ms"),
    ("records.jsonl", lambda d: d.update(position=3), "position is 3"),
    ("records.jsonl", lambda d: d.update(attempt=2), "attempt 2 has the place of attempt 1"),
    ("records.jsonl", lambda d: d.update(environment="0" * 16), "environment is 0000"),
    ("records.jsonl", lambda d: d["trial"].update(timeout_s=7.0), "timeout_s"),
    ("records.jsonl", lambda d: d["artefacts"].update({"load.har": "0"}), "load.har is lacking"),
    ("manifest.json", lambda d: d["environment"]["parts"].update(x="y"), "environment.id"),
    ("manifest.json", lambda d: d["environment"]["facts"].update(cores="64"), "manifest.json"),
    ("manifest.json", lambda d: d["trials"].reverse(), "trials"),
    ("manifest.json", lambda d: d["experiment"].update(seed=9), "the plan has no such trial"),
    ("costs.jsonl", lambda d: d.update(cpu_s=9.5), "costs.jsonl was changed"),
    ("verification.json", lambda d: d.update(judged=1), "verification.json"),
])  # fmt: skip
def test_each_edit_is_named(
    done: Path, capsys: pytest.CaptureFixture[str], name: str, change: Edit, said: str
) -> None:
    edit(done / name, change)
    code, err = verified(done, capsys)
    assert code == 1
    assert said in err
    assert not is_judged_here(done) or name == "costs.jsonl"


@pytest.mark.parametrize("name", ["observation.json", "trial.json", "console.log"])
def test_files_of_a_trial_are_held_against_its_record(
    done: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    trial = done / "trials" / read_records(done)[0].trial_id
    if name == "observation.json":
        edit(trial / name, _halve)
    else:
        (trial / name).write_text('{"seed": 4}')
    code, err = verified(done, capsys)
    assert (code, trial.name in err) == (1, True)


def test_who_makes_the_digests_fit_is_judged_all_the_same(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(done / "records.jsonl", _halve)
    write_seal(done, read_lazy_records(done), 2)
    code, err = verified(done, capsys)
    assert (code, "load.plt_ms" in err) == (1, True)


def test_two_records_of_one_attempt_are_named(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = (done / "records.jsonl").read_text().splitlines(keepends=True)
    with (done / "records.jsonl").open("a") as stream:
        stream.write(first.replace('"reason":null', '"reason":"zzz"'))
    code, err = verified(done, capsys)
    assert (code, "attempt 1 has the place of attempt 2" in err) == (1, True)


def test_what_was_not_kept_is_not_judged(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(done / "trials")
    (done / "verification.json").unlink()
    code, err = verified(done, capsys)
    assert code in (1, 4)
    assert "2 records cannot be judged: what their trials left is not there" in err
    assert not is_judged_here(done)


def test_a_merge_judges_its_parts(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done.parent / "out"
    edit(done / "records.jsonl", _halve)
    assert main(["merge", str(done), "-o", str(out)], make_services(done.parent)) == 1
    assert "load.plt_ms" in capsys.readouterr().err
    assert not out.exists()


def test_what_a_store_has_is_judged_before_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTFLIGHT_STORE", str(tmp_path / "store"))
    services = make_services(tmp_path)
    assert main(["run", QUICK, "-o", str(tmp_path / "one")], services) == 0
    from testbed.results.store import open_store

    store = open_store(tmp_path)
    assert store is not None
    good = read_records(tmp_path / "one")[0]
    load: Any = good.measured
    store.write(replace(good, measured=replace(load, plt_ms=load.plt_ms / 2)),
                tmp_path / "one" / "trials" / good.trial_id)  # fmt: skip
    capsys.readouterr()
    again = ["run", QUICK, "-o", str(tmp_path / "two"), "--verify", "0%"]
    assert main(again, services) == 0
    assert f"left out: trial {good.trial_id}" in capsys.readouterr().err
    two, one = (read_records(tmp_path / name) for name in ("two", "one"))
    assert [record.measured for record in two] == [record.measured for record in one]
