"""Descriptions of the kinds of trial: each says of its folder what is in it."""

from __future__ import annotations

import sys
from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

import testbed.kinds
from testbed.base import proc
from testbed.base.places import ROOT
from testbed.base.wings import provided
from testbed.kinds import KINDS, commands_of, find_kind, read_trial
from testbed.kinds.kind import Kind
from testbed.model import DEFAULT_KIND, Condition, Experiment, Trial, kind_of
from testbed.model.knob import build, declared
from testbed.runner.prepare import read_catalogue

FOLDER = Path(testbed.kinds.__file__).parent
LIGHT = ("archive", "client", "lab", "server", "wire")
ALL = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def test_every_folder_is_a_kind_and_every_key_is_its_own() -> None:
    own = {name for name, kind in KINDS.items() if kind.package == f"testbed.kinds.{name}"}
    provided_ones = {each.name for each in provided("kinds")}
    assert {path.parent.name for path in FOLDER.glob("*/__init__.py")} == own
    assert own | provided_ones == KINDS.keys() and not own & provided_ones
    assert len({kind.kept_as for kind in KINDS.values()}) == len(KINDS)
    assert find_kind("no such kind") is None and find_kind(["page_load"]) is None


@ALL
def test_what_it_names_is_there(kind: Kind) -> None:
    assert callable(import_module(kind.performance).perform)
    judgement = import_module(kind.judgement)
    assert callable(judgement.judge) and judgement.OBSERVATION().measured is None
    assert is_dataclass(kind.spec) and is_dataclass(kind.measured)
    assert kind.has_rules == (ROOT / kind.package.replace(".", "/") / "rules.py").is_file()
    assert kind.no_draw().endswith("ask for one repetition")


@ALL
def test_what_must_be_given_has_no_default_of_its_own(kind: Kind) -> None:
    knobs = {each.name for each in declared(kind.spec)}
    assert set(kind.needed) <= knobs
    if kind.library:
        assert (ROOT / kind.library).is_dir() and kind.name in knobs
        assert read_catalogue().libraries[kind.name]
        assert "text" in {each.name for each in fields(kind.spec)}


@ALL
def test_a_trial_is_read_as_it_was_written(kind: Kind) -> None:
    needed = dict.fromkeys(kind.needed, "x")
    spec = build(kind.spec, {"client": "x", "text": "x"} | needed)
    trial = Trial(spec, 1, 2, "virtual", "7.3")
    assert (kind_of(spec), read_trial(asdict(trial))) == (kind.name, trial)
    assert read_trial(asdict(trial)).id == trial.id


def test_commands_of_a_users_own_are_each_named_once() -> None:
    lab = KINDS["command"].spec
    conditions = tuple(
        build(lab, {"page": "p", "client": "command", "command": "a", "peer": peer})
        for peer in ("", "b", "a")
    )
    assert commands_of(Experiment("e", "", conditions, kind="command")) == ("a", "b")
    assert commands_of(Experiment("e", "", (Condition("p", "graph"),))) == ()
    assert DEFAULT_KIND in KINDS


def test_to_know_all_kinds_is_to_import_no_lab() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import testbed.kinds, testbed.results.records\n"
        "print(*{n.split('.')[1] for n in sys.modules if n.startswith('testbed.')})\n"
    )
    rooms = proc.run((sys.executable, "-P", "-c", program)).stdout.split()
    assert "kinds" in rooms and not set(rooms) & set(LIGHT)
