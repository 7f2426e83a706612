from __future__ import annotations

import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.cli import machine as cli_machine
from firstflight.cli.main import main
from firstflight.cli.reports import Reports
from testbed.base.places import CONFIGS, ROOT
from testbed.experiment.config import load_experiment
from testbed.experiment.plan import plan_trials
from testbed.model import Outcome
from testbed.results.environment import Environment
from testbed.results.folder import open_folder
from testbed.results.records import read_records
from testbed.setup.doctor import MachineCheck
from tests.hallway import CATALOGUE, ENVIRONMENT, make_services

QUICK = str(CONFIGS / "quick.toml")
IDS = [trial.id for trial in plan_trials(load_experiment(Path(QUICK), CATALOGUE))]


def latest(base: Path) -> Path:
    return (base / "results" / "latest").resolve()


def test_run_prints_the_table_and_leaves_a_whole_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", QUICK], make_services(tmp_path)) == 0
    folder = latest(tmp_path)
    assert {p.name for p in folder.iterdir()} == {
        *("costs.jsonl", "manifest.json", "records.jsonl", "report.html", "trials"),
        "verification.json",
    }
    out, err = capsys.readouterr()
    assert out == "table of 2 records by plt_ms\n"
    assert "[2/2] ok" in err
    *_, said, last = err.splitlines()
    assert said == f"2 ok; results in {folder}"
    assert last == f"report: {folder / 'report.html'}"


def test_no_arguments_rebuild_the_papers_table(tmp_path: Path) -> None:
    assert main([], make_services(tmp_path)) == 0
    assert latest(tmp_path).name.endswith("Z-paper-table1")
    assert len(read_records(latest(tmp_path))) == 144


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("failed", 4), ("timeout", 4), ("unproven", 1), ("lab_mismatch", 1), ("unsupported", 3)],
)
def test_the_exit_code_and_the_json_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome, code: int
) -> None:
    services = make_services(tmp_path, plan={IDS[1]: outcome})
    assert main(["run", QUICK, "--json"], services) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["exit_code"] == code
    assert told["outcomes"] == {**dict.fromkeys(told["outcomes"], 0), "ok": 1, outcome: 1}
    assert told["results"] == str(latest(tmp_path))
    assert f"--resume {latest(tmp_path)}" in err


def test_resume_mends_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services = make_services(tmp_path, plan={IDS[0]: "failed"})
    assert main(["run", QUICK, "--jobs", "1"], services) == 4  # one after the other
    folder = latest(tmp_path)
    assert main(["run", "--resume", str(folder)], make_services(tmp_path)) == 0
    assert [(r.outcome, r.attempt) for r in read_records(folder)] == [
        ("failed", 1), ("ok", 2), ("ok", 1)
    ]  # fmt: skip
    assert "1 trial to run, 1 already done" in capsys.readouterr().err
    assert latest(tmp_path) == folder


def test_resume_refuses_another_environment_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = make_services(tmp_path, plan={IDS[0]: "failed"})
    assert main(["run", QUICK, "--jobs", "1"], services) == 4  # one after the other
    before = (latest(tmp_path) / "records.jsonl").read_bytes()
    parts = {"kernel.name": "other", "program.nginx": "1.2"}
    other = Environment(parts, {"amazon": "1" * 64})
    capsys.readouterr()
    resume = ["run", "--resume", str(latest(tmp_path))]
    assert main(resume, make_services(tmp_path, environment=other)) == 2
    err = capsys.readouterr().err
    assert "differs: kernel.name: fake then, other now" in err
    assert "differs: program.nginx: absent then, 1.2 now" in err
    assert f"differs: page amazon: {'0' * 64} then, {'1' * 64} now" in err
    assert (latest(tmp_path) / "records.jsonl").read_bytes() == before
    same = replace(ENVIRONMENT, facts={"user": "somebody else"})
    assert main(resume, make_services(tmp_path, environment=same)) == 0


def test_resume_takes_no_other_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", QUICK, "--resume", "x", "-n", "3", "--set", "a=b", "--only", "c=d", "-o", "e"]
    assert main(words, make_services(tmp_path)) == 2
    assert "leave out CONFIG, -n, --only, --set, -o" in capsys.readouterr().err
    assert main(["run", "--resume", str(tmp_path)], make_services(tmp_path)) == 2
    assert "is not a results folder: it holds no manifest.json" in capsys.readouterr().err


def test_a_wrong_experiment_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", QUICK, "--set", "rtt=3", "--client", "nobody", "-n", "0", "--set", "x"]
    assert main(words, make_services(tmp_path)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(": ")[1] for line in err.splitlines()] == [
        "--set x", "--set rtt=3", "--client nobody", "-n 0"
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["rum"], ["run", "--bogus"], ["run", "--jobs", "0"], ["report"], ["run", "no.toml"]]
)
def test_wrong_usage_is_2_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(words, make_services(tmp_path)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err


def test_options_choose_the_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", QUICK, "--json", "--client", "wget2", "-n", "2", "--seed", "7"]
    words += ["--kernel", "virtual", "--kernel-version", "6.1", "--only", "tfo=true"]
    words += ["--set", "rtt_ms=[1, 2]", "--protocol", "h2"]
    assert main(words, make_services(tmp_path)) == 0
    trials = json.loads(capsys.readouterr().out)
    seen = [(t["condition"]["link"]["rtt_ms"], t["seed"], t["repetition"]) for t in trials]
    assert seen == [(1.0, 7, 0), (2.0, 7, 0), (1.0, 8, 1), (2.0, 8, 1)]
    assert {t["condition"]["client"] for t in trials} == {"wget2"}
    assert {t["condition"]["protocol"] for t in trials} == {"h2"}
    assert {t["kernel_version"] for t in trials} == {"6.1"}
    assert {t["condition"]["tcp"]["tfo"] for t in trials} == {True}
    assert len({t["id"] for t in trials}) == 4


def test_a_dry_run_shows_the_plan_and_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", QUICK, "--dry-run"], make_services(tmp_path)) == 0
    dry = capsys.readouterr().out
    assert main(["plan", QUICK], make_services(tmp_path)) == 0
    assert dry == capsys.readouterr().out
    assert [line.split()[0] for line in dry.splitlines()] == IDS
    assert list(tmp_path.iterdir()) == []


def test_output_goes_to_a_new_folder_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", QUICK, "-o", str(tmp_path / "mine")]
    assert main(words, make_services(tmp_path)) == 0
    assert len(read_records(tmp_path / "mine")) == 2
    assert not (tmp_path / "results").exists()
    assert main(words, make_services(tmp_path)) == 2
    assert "never overwritten" in capsys.readouterr().err


def test_a_folder_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    services = make_services(tmp_path, plan={IDS[0]: "failed"})
    assert main(["run", QUICK, "--jobs", "1"], services) == 4  # one after the other
    with open_folder(latest(tmp_path)):
        assert main(["run", "--resume", str(latest(tmp_path))], make_services(tmp_path)) == 4
    assert "another run writes" in capsys.readouterr().err


def test_report_writes_the_report_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", QUICK], make_services(tmp_path)) == 0
    folder = latest(tmp_path)
    (folder / "report.html").unlink()
    capsys.readouterr()
    assert main(["report", str(folder)], make_services(tmp_path)) == 0
    assert (folder / "report.html").exists()
    assert capsys.readouterr().out == "table of 2 records by plt_ms\n"


def test_several_folders_are_reported_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(tmp_path / name) for name in ("one", "other")]
    for folder in folders:
        assert main(["run", QUICK, "-o", folder], make_services(tmp_path)) == 0
    capsys.readouterr()
    assert main(["report", *folders], make_services(tmp_path)) == 0
    out, err = capsys.readouterr()
    page = Path(folders[0]) / "lanes.html"
    assert page.exists()
    assert out.splitlines() == [f"{folders[0]}:", "table of 2 records by plt_ms", f"{folders[1]}:",
                                "table of 2 records by plt_ms", "2 in lanes.html"]  # fmt: skip
    assert err.splitlines()[-1] == f"side by side: {page}"


def test_figures_of_folders_with_equal_names_are_kept_apart(tmp_path: Path) -> None:
    folders = [str(tmp_path / name / "lane") for name in ("one", "other")]
    for folder in folders:
        assert main(["run", QUICK, "-o", folder], make_services(tmp_path)) == 0
    services, written = make_services(tmp_path), []

    def write_figures(folder: Path, figures: Path) -> int:
        written.append((str(folder), figures.name))
        return 0

    services.reports.write_figures = write_figures  # type: ignore[method-assign]
    assert main(["report", *folders, "--figures", str(tmp_path / "figures")], services) == 0
    assert written == [(folders[0], "one-lane"), (folders[1], "other-lane")]


@pytest.mark.parametrize("verb", ["run", "report", "compare"])
def test_a_metric_that_is_none_is_refused_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    words = {"run": [QUICK], "report": ["x"], "compare": ["x", "y"]}[verb]
    assert main([verb, *words, "--metric", "fcp"], make_services(tmp_path)) == 2
    assert "--metric fcp: no load is measured by it (did you mean 'fcp_ms'?)" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "results").exists()


def test_the_table_of_a_run_and_of_a_report_is_by_the_metric_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", QUICK, "--metric", "fcp_ms"], make_services(tmp_path)) == 0
    assert capsys.readouterr().out == "table of 2 records by fcp_ms\n"
    folder = str(latest(tmp_path))
    assert main(["report", folder, "--metric", "lcp_ms"], make_services(tmp_path)) == 0
    assert capsys.readouterr().out == "table of 2 records by lcp_ms\n"


def test_clean_says_what_goes_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setattr("testbed.setup.clean.SHARED_MEMORY", tmp_path / "shm")  # others' guests
    cache = tmp_path / "cache"
    for name in ("pages/x", "kernels/7.3", "somebody-elses"):
        (cache / name).mkdir(parents=True)
        (cache / name / "file").write_text("1234")
    assert main(["clean", "--dry-run"], make_services(tmp_path)) == 0
    dry = capsys.readouterr().out.splitlines()
    assert dry == [f"would remove {cache}/kernels (4 B)", f"would remove {cache}/pages (4 B)"]
    assert (cache / "pages/x/file").exists()
    assert main(["clean"], make_services(tmp_path)) == 0
    assert [p.name for p in cache.iterdir()] == ["somebody-elses"]
    capsys.readouterr()
    assert main(["clean"], make_services(tmp_path)) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_clean_waits_for_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "cache"
    (cache / "pages").mkdir(parents=True)
    descriptor = os.open(cache, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        assert main(["clean"], make_services(tmp_path)) == 4
        assert main(["run", QUICK], make_services(tmp_path)) == 0
    finally:
        os.close(descriptor)
    assert "a run is using it" in capsys.readouterr().err
    assert (cache / "pages").exists()


@pytest.mark.parametrize(("checks", "differences", "code"), [
    ([MachineCheck("a", True, "here")], (), 0),
    ([MachineCheck("a", True, "here"), MachineCheck("b", False, "gone", "get it", needed=False)],
     (), 0),
    ([MachineCheck("a", False, "gone", "get it")], ("never asked",), 3),
    ([MachineCheck("a", True, "here")], ("packet 7",), 1),
])  # fmt: skip
def test_doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    checks: list[MachineCheck], differences: tuple[str, ...], code: int,
) -> None:  # fmt: skip
    boots: list[int] = []

    def check(count: int, client: str, version: str, jobs: int) -> tuple[str, ...]:
        assert (client, version, jobs) == ("graph", "6.1", 2)
        boots.append(count)
        return differences

    monkeypatch.setattr(cli_machine, "examine", lambda _jobs: checks)
    services = replace(make_services(tmp_path), check_determinism=check)
    asked = ["--determinism", "3", "--client", "graph", "--kernel-version", "6.1", "--jobs", "2"]
    assert main(["doctor", *asked], services) == code
    out = capsys.readouterr().out
    assert boots == ([] if code == 3 else [3])
    assert ("remedy: get it" in out) == any(not c.ok for c in checks)
    assert ("determinism: 3 boots are identical" in out) == (code == 0)
    assert main(["doctor", "--json", *asked], services) == code
    told = json.loads(capsys.readouterr().out)
    assert told["healthy"] == (code != 3)
    assert len(told["checks"]) == len(checks)


def test_help_names_every_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], make_services(tmp_path)) == 0
    out = capsys.readouterr().out
    verbs = {line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line}
    ours = {"run", "plan", "report", "root", "pages", "serve", "scenario", "clean", "doctor"}
    others = {"compare", "baseline", "history", "kernel", "knobs", "saturation", "exec", "shell"}
    others |= {
        "budgets",
        "completion",
        "import",
        "links",
        "merge",
        "pack",
        "site",
        "store",
        "unpack",
        "verify",
    }
    assert verbs == ours | others


@pytest.mark.parametrize("kind", ["missing", "empty", "file"])
@pytest.mark.parametrize("words", ["compare {} {}", "compare {sample} {}", "report {}",
                                   "baseline update {} --reason because-it-changed",
                                   "history add {}", "run --resume {}"])  # fmt: skip
def test_what_is_no_results_folder_is_a_wrong_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    named = tmp_path / kind
    services = replace(make_services(tmp_path), reports=Reports())
    sample = ROOT / "analysis" / "baselines" / "nightly"
    given = [word.format(named, named, sample=sample) for word in words.split()]
    assert main(given, services) == 2
    out, err = capsys.readouterr()
    why = {"missing": "there is no such folder", "empty": "it holds no manifest.json",
           "file": "it is a file"}[kind]  # fmt: skip
    assert (out, err) == ("", f"error: {named} is not a results folder: {why}\n")
