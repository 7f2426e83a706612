"""Knobs and what shows them: each is in the table, and each check that it names is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated

from testbed.kinds import KINDS, knobs_of
from testbed.mechanisms.checks import CHECKS
from testbed.mechanisms.knobs import (
    CALIBRATED,
    NOTHING,
    READ_BACK,
    SHOWN,
    TRIAL,
    check_settings_shown,
)
from testbed.model import Condition, Trial
from testbed.model.knob import Knob
from tests.evidence import evidence, found

READINGS = {CALIBRATED, READ_BACK, TRIAL, NOTHING, "the server's own account of its stack"}


def test_every_knob_of_every_kind_is_in_the_table_and_no_other() -> None:
    knobs = {
        ".".join((*each.table, each.name))
        for kind in KINDS.values()
        for each in knobs_of(kind)
        if each.knob.shown is None
    }
    assert knobs == SHOWN.keys()


def test_every_check_that_the_table_names_is_one() -> None:
    own = [getattr(import_module(kind.judgement), "OWN_CHECKS", ()) for kind in KINDS.values()]
    names = {each.name for checks in (CHECKS, *own) for each in checks}
    themselves = {each.knob.shown for kind in KINDS.values() for each in knobs_of(kind)} - {None}
    assert (themselves | set(SHOWN.values())) - READINGS <= names


@dataclass(frozen=True, slots=True)
class _More(Condition):
    extra: Annotated[int, Knob("One more.", since=4)] = 0


def test_a_knob_that_nobody_shows_is_unproven_off_its_default() -> None:
    trial = Trial(_More("p", "graph"), 0, 0, "virtual", "7.3")
    seen = replace(evidence(), trial=trial)
    assert list(check_settings_shown(seen)) == []
    seen = replace(seen, trial=replace(trial, condition=_More("p", "graph", extra=3)))
    assert list(check_settings_shown(seen)) == ["nothing shows that extra = 3 was performed"]
    assert found(check_settings_shown) == []
