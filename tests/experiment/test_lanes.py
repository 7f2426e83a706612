"""One experiment on two kernels: a results folder for each, never pooled, side by side."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.records.results import read_results
from firstflight.cli.main import main
from firstflight.cli.services import Services
from testbed.base.errors import ConfigurationError, StorageError, worst_exit
from testbed.base.places import CONFIGS
from testbed.experiment.config import load_experiment
from testbed.experiment.lanes import name_lanes, read_lanes, split
from testbed.experiment.options import parse_override
from testbed.experiment.plan import plan_trials
from testbed.kernel.run.interface import RawResult
from testbed.model import Outcome, Trial
from testbed.results.environment import Environment
from testbed.results.manifest import load_manifest
from testbed.results.records import read_records
from tests.fake_kernel import FakeKernel
from tests.hallway import CATALOGUE, ENVIRONMENT, make_means, make_services

VERSIONS = 'kernel.versions=["6.1", "7.3"]'
RUN = ["run", str(CONFIGS / "quick.toml"), "--set", VERSIONS, "--jobs", "1"]
ROOTS = 'root=["debian-12", "debian-13"]'
TWO_ROOTS = replace(CATALOGUE, roots=frozenset({"debian-12", "debian-13"}))
OLD, NEW = split(
    load_experiment(CONFIGS / "quick.toml", CATALOGUE, [parse_override(VERSIONS)])
)  # fmt: skip
FIRST_OLD, FIRST_NEW = plan_trials(OLD)[0].id, plan_trials(NEW)[0].id


def latest(base: Path) -> Path:
    return (base / "results" / "latest").resolve()


def counts(folder: Path) -> dict[str, int]:
    return {name: len(read_records(folder / name)) for name in ("6.1", "7.3")}


def test_each_kernel_has_a_folder_of_its_own_and_the_two_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RUN, make_services(tmp_path)) == 0
    folder = latest(tmp_path)
    assert folder.name.endswith("Z-quick")
    assert {p.name for p in folder.iterdir()} == {"6.1", "7.3", "lanes.json", "compare.html"}
    for name in ("6.1", "7.3"):
        manifest = load_manifest(folder / name)
        assert (manifest.experiment.kernel_version, manifest.experiment.kernel_versions) == (
            name, ()
        )  # fmt: skip
        records = read_records(folder / name)
        assert {record.trial.kernel_version for record in records} == {name}
        assert tuple(record.trial_id for record in records) == manifest.trials
        assert (folder / name / "report.html").exists()
    out, err = capsys.readouterr()
    assert out == f"6.1 and 7.3 in {folder.name}\n"
    assert "kernel virtual 6.1" in err
    assert f"7.3: 2 ok; results in {folder / '7.3'}" in err


def test_as_many_kernels_as_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["7.3", "mine", "mine-2", "6.1"]
    catalogue = replace(CATALOGUE, kernels={**CATALOGUE.kernels, "virtual": tuple(names)})
    services = replace(make_services(tmp_path), catalogue=lambda: catalogue)
    words = ["run", RUN[1], "--set", f"kernel.versions={json.dumps(names)}", "--jobs", "1"]
    assert main([*words, "--json"], services) == 0
    folder = latest(tmp_path)
    assert list(read_lanes(folder)) == names
    assert {p.name for p in folder.iterdir()} == {
        *names, "lanes.json", "compare-mine.html", "compare-mine-2.html", "compare-6.1.html"
    }  # fmt: skip
    out, err = capsys.readouterr()
    assert list(json.loads(out)["lanes"]) == names
    assert f"{folder / 'compare-mine-2.html'}, {folder / 'compare-6.1.html'}" in err
    assert main(["run", "--resume", str(folder)], services) == 0


def test_they_are_never_read_as_one_result(tmp_path: Path) -> None:
    assert main(RUN, make_services(tmp_path)) == 0
    folder = latest(tmp_path)
    with pytest.raises(ConfigurationError, match=r"never pooled; .*/6\.1 and .*/7\.3"):
        read_results(folder)
    assert len(read_results(folder / "6.1").records) == 2


@pytest.mark.parametrize(
    ("plan", "crossed", "code"),
    [
        ({}, 0, 0),
        ({}, 4, 4),
        ({FIRST_OLD: "unproven"}, 0, 1),
        ({FIRST_OLD: "unproven", FIRST_NEW: "failed"}, 0, 4),
        ({FIRST_OLD: "unsupported", FIRST_NEW: "lab_mismatch"}, 1, 3),
    ],
)
def test_the_worst_lane_decides(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plan: Mapping[str, Outcome],
    crossed: int,
    code: int,
) -> None:
    assert main([*RUN, "--json"], make_services(tmp_path, plan=plan, crossed=crossed)) == code
    out, err = capsys.readouterr()
    reported = json.loads(out)
    assert reported["exit_code"] == code
    assert reported["results"] == str(latest(tmp_path))
    assert reported["comparison"] == {"cells": []}
    lanes = reported["lanes"]
    assert lanes["6.1"]["results"] == str(latest(tmp_path) / "6.1")
    assert worst_exit([lanes["6.1"]["exit_code"], lanes["7.3"]["exit_code"], crossed]) == code
    assert (f"--resume {latest(tmp_path)}\n" in err) == bool(plan)


def test_resume_goes_on_with_each_lane(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN, make_services(tmp_path, plan={FIRST_OLD: "failed"})) == 4
    folder = latest(tmp_path)
    before = (folder / "7.3" / "records.jsonl").read_bytes()
    (folder / "compare.html").unlink()
    assert main(["run", "--resume", str(folder)], make_services(tmp_path)) == 0
    assert counts(folder) == {"6.1": 3, "7.3": 2}
    assert (folder / "7.3" / "records.jsonl").read_bytes() == before
    assert (folder / "compare.html").exists()
    assert "1 trial to run, 1 already done" in capsys.readouterr().err


def test_resume_refuses_another_environment_of_any_lane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RUN, make_services(tmp_path, plan={FIRST_OLD: "failed"})) == 4
    folder = latest(tmp_path)
    other = Environment({"kernel.name": "other"}, ENVIRONMENT.pages)
    resume = ["run", "--resume", str(folder)]
    assert main(resume, make_services(tmp_path, environment=other)) == 2
    err = capsys.readouterr().err
    assert f"--resume {folder / '6.1'}: this environment is another" in err
    assert f"--resume {folder / '7.3'}: this environment is another" in err
    assert counts(folder) == {"6.1": 2, "7.3": 2}


class InterruptingKernel(FakeKernel):
    """A kernel under which somebody presses Ctrl-C."""

    def run(
        self, trial: Trial, page: Path | None, out: Path, slot: int, cancel: threading.Event
    ) -> RawResult:
        os.kill(os.getpid(), signal.SIGINT)
        cancel.wait(60)
        return FakeKernel.run(self, trial, page, out, slot, cancel)


def interrupted(base: Path) -> Services:
    means = make_means(InterruptingKernel())
    return replace(make_services(base), prepare=lambda _experiment, _jobs: (means, ENVIRONMENT))


def test_an_interrupt_ends_both_lanes_and_resume_runs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--json"], interrupted(tmp_path)) == 130
    folder = latest(tmp_path)
    assert counts(folder) == {"6.1": 0, "7.3": 0}
    out, err = capsys.readouterr()
    reported = json.loads(out)
    assert (reported["exit_code"], reported["comparison"], list(reported["lanes"])) == (
        130,
        None,
        ["6.1"],
    )
    assert f"interrupted: 6.1: 2 not run; go on with --resume {folder}\n" in err
    assert not (folder / "compare.html").exists()
    assert main(["run", "--resume", str(folder)], make_services(tmp_path)) == 0
    assert counts(folder) == {"6.1": 2, "7.3": 2}


def test_report_writes_each_lanes_report_and_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RUN, make_services(tmp_path)) == 0
    folder = latest(tmp_path)
    written = [folder / "compare.html", *folder.glob("*/report.html")]
    for path in written:
        path.unlink()
    capsys.readouterr()
    assert main(["report", str(folder)], make_services(tmp_path)) == 0
    assert len(written) == 3
    assert all(path.exists() for path in written)
    assert capsys.readouterr().out == f"6.1 and 7.3 in {folder.name}\n"


def test_the_plan_has_the_trials_of_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [RUN[1], "--set", VERSIONS]
    assert main(["run", *words, "--dry-run"], make_services(tmp_path)) == 0
    dry = capsys.readouterr().out
    assert main(["plan", *words], make_services(tmp_path)) == 0
    assert dry == capsys.readouterr().out
    assert [line.split()[:2] for line in dry.splitlines()] == [
        [trial.id, trial.kernel_version] for lane in (OLD, NEW) for trial in plan_trials(lane)
    ]
    assert main(["plan", *words, "--json"], make_services(tmp_path)) == 0
    versions = [trial["kernel_version"] for trial in json.loads(capsys.readouterr().out)]
    assert versions == ["6.1", "6.1", "7.3", "7.3"]
    assert list(tmp_path.iterdir()) == []


def test_one_version_is_an_ordinary_run(tmp_path: Path) -> None:
    assert main([*RUN, "--kernel-version", "6.1"], make_services(tmp_path)) == 0
    assert read_lanes(latest(tmp_path)) == ()
    assert load_manifest(latest(tmp_path)).experiment == OLD


def test_output_goes_to_a_new_folder_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*RUN, "-o", str(tmp_path / "mine")]
    assert main(words, make_services(tmp_path)) == 0
    assert read_lanes(tmp_path / "mine") == ("6.1", "7.3")
    assert not (tmp_path / "results").exists()
    assert main(words, make_services(tmp_path)) == 2
    assert "never overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kernel", "sets", "problem"),
    [
        ('version = "6.1"\nversions = ["6.1", "7.3"]', [],
         ":4: kernel.version: there are kernel.versions as well (FOLDER:5); keep one of the two"),
        ('versions = ["6.1", "7.4"]', [], ":4: kernel.versions: the virtual kernel has no version "
         "'7.4' (did you mean '7.3'?); allowed: 7.3, 6.1"),
        ('versions = ["6.1", "6.1"]', [], ":4: kernel.versions: '6.1' is in the list twice"),
        ('versions = ["6.1"]', [], ':4: kernel.versions: ["6.1"] is not a list of 2 to 100'),
        ('versions = ["6.1", 7.3]', [], ":4: kernel.versions[1]: 7.3 is not a list of 2"),
        ('name = "host"\nversions = ["6.1", "7.3"]', [], ":5: kernel.versions: the host kernel is"),
        ("", ["kernel.versions=6.1"], "--set kernel.versions=6.1: kernel.versions: "),
        ('version = "6.1"', [f"{VERSIONS[:-1]}, 'x']"], f"--set {VERSIONS[:-1]}, 'x']: kernel.ver"),
    ],
)  # fmt: skip
def test_versions_that_cannot_be(
    tmp_path: Path, kernel: str, sets: list[str], problem: str
) -> None:
    path = tmp_path / "two.toml"
    path.write_text(f'page = "wsj"\nclient = "graph"\n[kernel]\n{kernel}\n')
    catalogue = replace(CATALOGUE, kernels={**CATALOGUE.kernels, "host": ("6.18",)})
    with pytest.raises(ConfigurationError) as caught:
        load_experiment(path, catalogue, [parse_override(text) for text in sets])
    (found,) = caught.value.problems
    expected = problem.replace("FOLDER", str(path))
    assert found.startswith(expected if sets else f"{path}{expected}")


def test_each_root_has_a_folder_of_its_own(tmp_path: Path) -> None:
    services = replace(make_services(tmp_path), catalogue=lambda: TWO_ROOTS)
    assert main(["run", RUN[1], "--set", ROOTS, "--jobs", "1"], services) == 0
    folder = latest(tmp_path)
    assert read_lanes(folder) == ("debian-12", "debian-13")
    for name in read_lanes(folder):
        manifest = load_manifest(folder / name)
        assert (manifest.experiment.root, manifest.experiment.roots) == (name, ())
        assert tuple(record.trial_id for record in read_records(folder / name)) == manifest.trials
    assert (folder / "compare.html").exists()
    assert main(["run", "--resume", str(folder)], services) == 0


def test_the_plan_has_the_trials_of_each_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = replace(make_services(tmp_path), catalogue=lambda: TWO_ROOTS)
    words = ["plan", RUN[1], "--set", ROOTS]
    assert main(words, services) == 0
    lanes = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert lanes == ["debian-12", "debian-12", "debian-13", "debian-13"]
    assert main([*words, "--json"], services) == 0
    assert [trial["root"] for trial in json.loads(capsys.readouterr().out)] == lanes


def test_lanes_of_kernels_and_roots_are_named_by_both() -> None:
    chosen = [parse_override(text) for text in (ROOTS, VERSIONS)]
    lanes = split(load_experiment(CONFIGS / "quick.toml", TWO_ROOTS, chosen))
    assert name_lanes(lanes) == ("6.1-debian-12", "6.1-debian-13", "7.3-debian-12", "7.3-debian-13")
    assert [(each.kernel_version, each.root) for each in lanes] == [
        (version, root) for version in ("6.1", "7.3") for root in ("debian-12", "debian-13")
    ]


SWEPT_ROOTS = '[sweep]\nroot = ["debian-12", "debian-13"]'


@pytest.mark.parametrize(
    ("text", "sets", "roots"),
    [
        ("", [], ["debian-13"]),
        ('root = "debian-12"', [], ["debian-12"]),
        (SWEPT_ROOTS, [], ["debian-12", "debian-13"]),
        ('[sweep]\nroot = ["debian-12"]', [], ["debian-12"]),
        ('root = "debian-12"', [ROOTS], ["debian-12", "debian-13"]),
        (SWEPT_ROOTS, ["root=debian-13"], ["debian-13"]),
    ],
)
def test_the_last_word_on_the_root_counts(
    tmp_path: Path, text: str, sets: list[str], roots: list[str]
) -> None:
    path = tmp_path / "roots.toml"
    path.write_text(f'page = "wsj"\nclient = "graph"\n{text}\n')
    lanes = split(load_experiment(path, TWO_ROOTS, [parse_override(each) for each in sets]))
    assert [each.root for each in lanes] == roots
    assert name_lanes(lanes) == (tuple(roots) if len(roots) > 1 else ("",))
    # Which root it is, is no condition: the trials are the same ones.
    assert len({tuple(trial.id for trial in plan_trials(each)) for each in lanes}) == 1


@pytest.mark.parametrize(
    ("text", "sets", "problem"),
    [
        ('root = "debian-14"', [], ":3: root: no root is named 'debian-14' (did you mean"),
        ('[sweep]\nroot = ["debian-13", "debian-14"]', [],
         ":4: sweep.root[1]: no root is named 'debian-14' (did you mean 'debian-13'?); allowed: "
         "debian-12, debian-13"),
        (f'root = "debian-12"\n{SWEPT_ROOTS}', [],
         ":3: root: also swept (FOLDER:5); keep one of the two"),
        ('[sweep]\nroot = ["debian-12", "debian-12"]', [],
         ":4: sweep.root: 'debian-12' is in the list twice"),
        ("[sweep]\nroot = []", [], ":4: sweep.root: [] is not a list of one or more values"),
        ('[sweep]\nroot = "debian-12"', [], ':4: sweep.root: "debian-12" is not a list of one or'),
        ('[sweep]\nroot = ["debian-12", 7]', [], ":4: sweep.root[1]: 7 is not the name of a root"),
        ('root = ["debian-12"]', [], ':3: root: ["debian-12"] is not the name of a root'),
        ("", ['root=["debian-12", "x"]'], '--set root=["debian-12", "x"]: sweep.root[1]: no root'),
    ],
)  # fmt: skip
def test_roots_that_cannot_be(tmp_path: Path, text: str, sets: list[str], problem: str) -> None:
    path = tmp_path / "roots.toml"
    path.write_text(f'page = "wsj"\nclient = "graph"\n{text}\n')
    with pytest.raises(ConfigurationError) as caught:
        load_experiment(path, TWO_ROOTS, [parse_override(each) for each in sets])
    (found,) = caught.value.problems
    expected = problem.replace("FOLDER", str(path))
    assert found.startswith(expected if sets else f"{path}{expected}")


def test_the_last_word_on_the_kernel_counts() -> None:
    chosen = [parse_override(text) for text in ("kernel.version=7.3", VERSIONS)]
    several = load_experiment(CONFIGS / "quick.toml", CATALOGUE, chosen)
    assert several.kernel_versions == ("6.1", "7.3")
    one = load_experiment(CONFIGS / "quick.toml", CATALOGUE, chosen[::-1])
    assert (one.kernel_version, one.kernel_versions) == ("7.3", ())


@pytest.mark.parametrize(
    "text", ["[", "[]", '{"schema": 9, "lanes": ["a"]}', '{"schema": 1, "lanes": [".."]}']
)
def test_lanes_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "lanes.json").write_text(text)
    with pytest.raises(StorageError, match=r"lanes\.json"):
        read_lanes(tmp_path)


def test_a_whole_experiment_is_one_lane() -> None:
    assert split(OLD) == (OLD,)
    assert (OLD.kernel_version, NEW.kernel_version) == ("6.1", "7.3")
