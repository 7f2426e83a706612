"""``pack`` and ``unpack``: what they say and refuse; that a re-run is the same is in acceptance."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.cli.main import main
from tests.hallway import make_doors
from tests.packs.results import BASELINE, copy_results

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Said:
    """Give a command in a folder of its own; its code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words, make_doors(tmp_path))
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
