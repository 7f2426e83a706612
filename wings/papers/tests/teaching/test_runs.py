"""Commands of labs: which are run, where their results are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import ConfigurationError
from wings.papers.teaching.runs import VARIABLE, run


@pytest.fixture(autouse=True)
def nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))


@pytest.mark.parametrize(
    "command", ["ls", "./run.sh", "./run.sh scenario all", "./run.sh run -n 1"]
)
def test_only_runs_of_an_experiment_are_run(command: str) -> None:
    with pytest.raises(ConfigurationError, match=r"does not begin with ./run.sh run CONFIG"):
        run(command)


@pytest.mark.parametrize("option", ["-o here", "--resume here"])
def test_the_folder_is_the_labs(option: str) -> None:
    with pytest.raises(ConfigurationError, match="leave -o out"):
        run(f"./run.sh run configs/quick.toml {option}")


def test_an_experiment_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"no experiment configs/none.toml"):
        run("./run.sh run configs/none.toml")


@pytest.mark.guest
@pytest.mark.slow
def test_what_was_measured_is_used_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "./run.sh run configs/quick.toml --set page=file-60k --set tfo=false"
    first = run(command)
    said = capsys.readouterr().out
    assert said.startswith(f"$ {command} -o {tmp_path}/quick-")
    assert "The load is verified by packet capture" in said
    lines = (first.folder / "records.jsonl").read_bytes()
    assert run(command, quiet=True).folder == first.folder
    assert capsys.readouterr().out == said.splitlines(keepends=True)[0]
    assert (first.folder / "records.jsonl").read_bytes() == lines
    assert [path.name for path in tmp_path.iterdir()] == [first.folder.name]
