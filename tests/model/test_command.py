"""Commands of a user's own: words, placeholders, and the kind of trial that runs one."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from testbed.kinds import read_trial
from testbed.kinds.command.spec import LabCommand
from testbed.model import Condition, LinkSpec, TcpSpec, Trial
from testbed.model.command import fill_words, placeholders_of, split_words


def test_words_are_split_as_a_shell_does() -> None:
    assert split_words("a 'b c' \"d\" e\\ f $X *") == ("a", "b c", "d", "e f", "$X", "*")


@pytest.mark.parametrize("command", ["", "  ", "a 'b"])
def test_what_cannot_be_split(command: str) -> None:
    with pytest.raises(ValueError, match=r"no word|quotation"):
        split_words(command)


def test_placeholders_are_names_in_braces_that_are_not_the_programs_own() -> None:
    words = ("{url}", "x={ca},{url}", "%{time_total}", "${out}", '{"a": 1}', "{}", "{url")
    assert placeholders_of(words) == ("url", "ca")
    filled = fill_words(words, {"url": "U", "ca": "C", "time_total": "no", "out": "no"})
    assert filled == ("U", "x=C,U", "%{time_total}", "${out}", '{"a": 1}', "{}", "{url")
    assert fill_words(("{other}",), {"url": "U"}) == ("{other}",)


def test_a_command_is_a_kind_of_its_own_in_the_lab_of_a_page_load() -> None:
    spec = LabCommand(
        "p", "command", LinkSpec(rtt_ms=7), TcpSpec(tfo=True), command="ping", at="server"
    )
    trial = Trial(spec, 0, 0, "virtual", "7.3")
    assert (trial.kind, trial.page, trial.linked.link.rtt_ms) == ("command", "p", 7)
    assert trial.condition_as(LabCommand) is spec
    again = read_trial(json.loads(json.dumps(asdict(trial))))
    assert again == trial and again.id == trial.id


def test_a_page_load_is_none() -> None:
    trial = Trial(Condition("p", "command", command="x"), 0, 0, "virtual", "7.3")
    assert trial.kind == "page_load"
    with pytest.raises(TypeError, match="is no LabCommand"):
        _ = trial.condition_as(LabCommand)


def test_a_command_counts_in_the_id_and_none_does_not() -> None:
    def name(**more: str) -> str:
        return Trial(Condition("p", "graph", **more), 0, 0, "virtual", "7.3").id  # type: ignore[arg-type]

    assert name() == name(command="") == "5f4fa0493c64efdd"
    assert name(command="x") not in (name(), name(command="y"))
