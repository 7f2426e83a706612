"""The verb that watches a CI's branches: bad input, lists that are away, and what it calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.cli.main import main
from tests.hallway import make_services
from wings.kernels.cli import watch as kernel_watch
from wings.kernels.tests.watch.history import (
    A_DAY,
    TreeVerbs,
    make_week,
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_list_that_is_away_is_said_and_looked_for_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["kernel", "watch", str(tmp_path / "absent.json"), str(tmp_path / "public"),
             "--rounds", "2", "--every", "0"]  # fmt: skip
    assert main(words, make_services(tmp_path)) == 0
    assert capsys.readouterr().err.count("absent.json cannot be read: No such file") == 2


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    words = ["kernel", "watch", "branches.json", str(tmp_path / "file" / "public"), "--rounds", "1"]
    assert main(words, make_services(tmp_path)) == 2
    assert "Not a directory; choose another" in capsys.readouterr().err
    words = ["kernel", "watch", "branches.json", str(tmp_path / "public"), "--rounds", "0"]
    assert main(words, make_services(tmp_path)) == 2


def test_the_newest_branch_is_tested_and_a_worse_one_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    week = make_week(tmp_path / "week", seed=3, branches=A_DAY)
    verbs = TreeVerbs(tmp_path / "data" / "firstflight" / "watch.git")
    monkeypatch.setattr(kernel_watch, "call_verb", verbs)
    listed = tmp_path / "branches.json"
    public = tmp_path / "public"
    planted = [bool(week.planted[entry["branch"]]) for entry in week.listed]
    codes = {}
    for worse in (False, True):
        entry = week.listed[planted.index(worse)]
        listed.write_text(json.dumps([entry | {"url": str(week.repository)}]))
        words = ["kernel", "watch", str(listed), str(public), "--rounds", "1", "--packetdrill",
                 str(tmp_path)]  # fmt: skip
        codes[entry["branch"]] = main(words, make_services(tmp_path))
    assert list(codes.values()) == [0, 1]
    said = capsys.readouterr().err
    assert "is no worse than its base" in said
    assert "is worse than its base" in said
    urls = {entry["url"] for entry in json.loads((public / "results.json").read_text())}
    assert urls == {f"./results-{name}.json" for name in codes}
