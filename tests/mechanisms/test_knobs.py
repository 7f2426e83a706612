"""Knobs and what shows them: each check that they name is one, and none is believed without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated

from testbed.kinds import KINDS, knobs_of
from testbed.mechanisms.checks import CHECKS
from testbed.model import Condition, Trial
from testbed.model.knob import READINGS, Knob
from testbed.proof.check import find_problems
from tests.evidence import evidence


def test_every_knob_of_every_kind_names_what_shows_it() -> None:
    for kind in KINDS.values():
        own = getattr(import_module(kind.judgement), "OWN_CHECKS", ())
        names = {each.name for each in (*CHECKS, *own)} | READINGS
        # A kind may refuse what only page loads have.
        others = {each.name for other in KINDS.values() for each in
                  getattr(import_module(other.judgement), "OWN_CHECKS", ())}  # fmt: skip
        assert {each.knob.shown for each in knobs_of(kind)} <= names | others, kind.name


@dataclass(frozen=True, slots=True)
class _More(Condition):
    extra: Annotated[int, Knob("One more.", since=4)] = 0


def test_a_knob_that_nobody_shows_is_unproven_off_its_default() -> None:
    trial = Trial(_More("p", "graph"), 0, 0, "virtual", "7.3")
    seen = replace(evidence(), trial=trial)
    assert find_problems(seen, ()) == ()
    seen = replace(seen, trial=replace(trial, condition=_More("p", "graph", extra=3)))
    assert find_problems(seen, ()) == ("nothing shows that extra = 3 was performed",)


def test_a_check_that_cannot_speak_shows_nothing() -> None:
    condition = Condition("p", "graph", dns="hosts")
    seen = evidence(condition=condition)
    assert "nothing shows that dns = hosts was performed" in find_problems(seen, ())
