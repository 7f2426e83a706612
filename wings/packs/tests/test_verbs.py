"""``pack`` and ``unpack``: what they say and refuse; ``test_rerun`` shows that re-runs agree."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.main import main
from firstflight.cli.new_run import NewRun
from testbed.results.tally import Tally
from tests.hallway import make_services
from wings.packs import verbs
from wings.packs.tests.results import BASELINE, copy_lanes, copy_results, forge

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Said:
    """Give a command in a folder of its own; its code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words, make_services(tmp_path))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_pack_says_what_it_wrote_and_what_comes_next(say: Said, tmp_path: Path) -> None:
    copy_results(tmp_path / "mine")
    code, out, _ = say("pack", "mine/")
    assert code == 0
    first, digest, then = out.splitlines()
    assert first.startswith("mine.zip: 8 files with the pages tum-website, wikipedia, ")
    assert digest.startswith("SHA-256 ")
    assert then == "On another machine: ./run.sh unpack mine.zip --rerun"


def test_pack_does_not_overwrite(say: Said) -> None:
    assert say("pack", str(BASELINE), "-o", "x.zip")[0] == 0
    code, _, err = say("pack", str(BASELINE), "-o", "x.zip")
    assert code == 2
    assert "--replace" in err
    assert say("pack", str(BASELINE), "-o", "x.zip", "--replace")[0] == 0


def test_pack_says_that_pages_are_missing(say: Said, tmp_path: Path) -> None:
    folder = copy_results(tmp_path / "mine")
    manifest = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(manifest.replace('"wikipedia"', '"my-own"'))
    code, out, _ = say("pack", "mine")
    assert code == 0
    assert "CANNOT be re-run on another machine" in out
    assert "  my-own: " in out
    code, _, err = say("unpack", "mine.zip", "new", "--rerun")
    assert code == 2
    assert "has no page 'my-own'" in err
    assert "new was unpacked and cannot be re-run" in err


def test_unpack_goes_to_results_by_default(say: Said, tmp_path: Path) -> None:
    say("pack", str(BASELINE), "-o", "night.zip")
    code, out, _ = say("unpack", "night.zip")
    assert code == 0
    folder = tmp_path / "results" / "night"
    assert out.splitlines()[0] == f"7 files unpacked to {folder}"
    assert (folder / "records.jsonl").read_bytes() == (BASELINE / "records.jsonl").read_bytes()
    code, _, err = say("unpack", "night.zip")
    assert code == 2
    assert f"{folder} is there" in err


def test_printed_commands_are_quoted(say: Said, tmp_path: Path) -> None:
    copy_results(tmp_path / "it's mine & $HOME")
    code, out, _ = say("pack", "it's mine & $HOME")
    assert code == 0
    *_, command = out.splitlines()[2].partition(": ")
    assert shlex.split(command) == ["./run.sh", "unpack", "it's mine & $HOME.zip",
                                    "--rerun"]  # fmt: skip
    code, out, _ = say("unpack", "it's mine & $HOME.zip", "a b")
    assert code == 0
    *_, command = out.splitlines()[1].partition(": ")
    assert shlex.split(command) == ["./run.sh", "report", "a b"]


def test_results_are_never_called_latest(say: Said, tmp_path: Path) -> None:
    assert say("pack", str(BASELINE), "-o", "latest.zip")[0] == 0
    for words in ((), ("results/latest",), ("results/latest", "--replace")):
        code, _, err = say("unpack", "latest.zip", *words)
        assert code == 2
        assert "name another folder" in err
    assert not (tmp_path / "results").exists()
    assert say("unpack", "latest.zip", "elsewhere/latest")[0] == 0


def test_a_place_of_the_rerun_is_looked_at_before_anything_is_unpacked(
    say: Said, tmp_path: Path
) -> None:
    assert say("pack", str(BASELINE), "-o", "night.zip")[0] == 0
    copy_results(tmp_path / "old")
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for place, problem in (
        ("old", "./run.sh run --resume old"),
        ("file", "is no folder"),
        ("new", "the packed results go to new"),
        (".", "the packed results go to new"),
        ("results/latest", "link to the newest"),
    ):
        code, _, err = say("unpack", "night.zip", "new", "--rerun", "-o", place)
        assert code == 2
        assert problem in err
    assert sorted(tmp_path.rglob("*")) == before


def test_records_that_cannot_be_read_are_told_before_any_trial(
    say: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("trials were run")

    monkeypatch.setattr(verbs, "run_new", fail)
    copy_lanes(tmp_path / "mine")
    records = (BASELINE / "records.jsonl").read_bytes()
    assert say("pack", "mine")[0] == 0
    for lane in ("6.1", "7.3"):
        forge(tmp_path / "mine.zip", f"{lane}/records.jsonl", b'{"schema": 0}\n' + records)
    code, _, err = say("unpack", "mine.zip", "new", "--rerun")
    assert code == 2
    for lane in ("6.1", "7.3"):
        assert f"new/{lane}/records.jsonl:1: schema 0" in err
    assert not (tmp_path / "results").exists()


def test_an_interrupted_rerun_says_the_command_that_starts_it_again(
    say: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> NewRun:
        return NewRun(tmp_path, (), [Tally({}, 8, interrupted=True)])

    assert say("pack", str(BASELINE), "-o", "my night.zip")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(verbs, "run_new", interrupt)
        code, _, err = say("unpack", "my night.zip", "new", "--rerun", "-o", "again")
    assert code == 130
    (command,) = re.findall(r"interrupted: 8 not run; start again: (.*)", err)
    program, *words = shlex.split(command)
    assert program == "./run.sh"
    monkeypatch.setattr(verbs, "_rerun", lambda *_: 0)
    assert say(*words)[0] == 0


@pytest.mark.parametrize("given", ["<b>", "my own", "http://a b"])
def test_a_licence_is_an_identifier_or_an_address(say: Said, tmp_path: Path, given: str) -> None:
    code, _, err = say("pack", str(BASELINE), "-o", "x.zip", "--license", given)
    assert code == 2
    assert "SPDX identifier" in err
    assert list(tmp_path.glob("x*")) == []


def test_options_of_a_rerun_alone_are_refused(say: Said) -> None:
    code, _, err = say("unpack", "x.zip", "--jobs", "2", "-o", "y")
    assert code == 2
    assert "-o and --jobs: only with --rerun" in err


def test_what_is_no_pack_is_refused(say: Said, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("hello")
    code, _, err = say("unpack", "x.zip")
    assert code == 2
    assert "x.zip: no pack of results, or damaged" in err


def test_an_experiment_that_no_file_may_ask_for_is_not_rerun(say: Said, tmp_path: Path) -> None:
    folder = copy_results(tmp_path / "mine")
    document: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    document["experiment"]["name"] = "../../x"
    document["experiment"]["kernel"] = "other"
    for condition in document["experiment"]["conditions"]:
        condition["client"] = "sh"
        condition["link"]["rtt_ms"] = -1
    (folder / "manifest.json").write_text(json.dumps(document))
    shutil.rmtree(folder / "trials")
    assert say("pack", "mine")[0] == 0
    code, _, err = say("unpack", "mine.zip", "new", "--rerun")
    assert code == 2
    for problem in ("cannot name an experiment", "kernel.name", "client: ", "rtt_ms: "):
        assert problem in err
    assert not (tmp_path / "results").exists()
