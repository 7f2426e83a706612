"""Commands of experiment files: what is refused, and which conditions they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.experiment.config import load_experiment
from testbed.experiment.options import parse_override
from testbed.experiment.plan import plan_trials
from testbed.kinds.command.spec import LabCommand
from testbed.model import Condition, Experiment
from tests.experiment.test_config import problems
from tests.hallway import CATALOGUE

BASE = 'page = "wsj"\n'
LOAD = BASE + 'client = "command"\n'


def load(folder: Path, text: str, *sets: str) -> Experiment:
    path = folder / "trial.toml"
    path.write_text(text)
    return load_experiment(path, CATALOGUE, [parse_override(text) for text in sets])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'the client "command" has none to run; set command = "PROGRAM ..."'),
        ('command = "a \'b"\n', "cannot be split into words: No closing quotation"),
        ('command = "curl {ulr}"\n', "no placeholder is named {ulr} (did you mean 'url'?)"),
        ('command = "{folder}/x"\n', "command_folder names, and there is none; set it"),
        ('command = "./x"\n', "there is no ./x; put it into a folder, name that with"),
        ('command = "/opt/me/x"\n', "write {folder}/x"),
        ('command = "curl {server}"\n', "no placeholder is named {server}"),
        ('command = "curl"\ncommand_folder = "nowhere"\n', "command_folder: no folder "),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = problems(tmp_path, LOAD + text)
    assert said in problem
    assert "trial.toml" in problem


def test_all_problems_are_said_at_once(tmp_path: Path) -> None:
    text = BASE + '[sweep]\nclient = ["graph", "command"]\ncommand = ["./x {no}", "./y"]\n'
    assert len(problems(tmp_path, text)) == 3


def test_a_page_load_by_another_client_is_the_same_with_and_without(tmp_path: Path) -> None:
    plain = load(tmp_path, BASE + 'client = "graph"\n')
    beside = load(tmp_path, BASE + 'client = "graph"\ncommand = "curl"\n')
    assert [t.id for t in plan_trials(plain)] == [t.id for t in plan_trials(beside)]


def test_a_sweep_of_commands_has_each_other_client_once(tmp_path: Path) -> None:
    swept = '[sweep]\nclient = ["graph", "command"]\ncommand = ["curl", "wget"]\n'
    found = load(tmp_path, BASE + swept).conditions_as(Condition)
    assert [(one.client, one.command) for one in found] == [
        ("graph", ""), ("command", "curl"), ("command", "wget"),
    ]  # fmt: skip


def test_the_folder_is_beside_the_file_or_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("beside/mine", "typed/mine"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "typed")
    text = LOAD + 'command = "{folder}/x"\ncommand_folder = "mine"\n'
    assert load(tmp_path / "beside", text).command_folder == str(tmp_path / "beside" / "mine")
    typed = load(tmp_path / "beside", text, "command_folder=mine")
    assert typed.command_folder == str(tmp_path / "typed" / "mine")


def test_a_command_in_the_lab(tmp_path: Path) -> None:
    text = BASE + 'kind = "command"\ncommand = "curl {server}"\npeer = "nc -l"\nat = "server"\n'
    (found,) = load(tmp_path, text).conditions
    assert found == LabCommand("wsj", "command", command="curl {server}", peer="nc -l", at="server")


def test_a_command_in_the_lab_needs_one(tmp_path: Path) -> None:
    assert "command: missing" in problems(tmp_path, BASE + 'kind = "command"\n')[0]


def test_a_page_load_has_no_other_end(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, LOAD + 'command = "curl"\npeer = "nc"\n')
    assert 'set kind = "command"' in problem
