"""Whether seeds made a difference between loads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.experiment.draws import RESOLUTION_MS, draws_nothing, nothing_varies, seeds_differ
from testbed.model import (
    Condition,
    Experiment,
    LinkSpec,
    PageLoad,
    Record,
    RequestTiming,
    TcpSpec,
    Trial,
)

URL = "http://www.page.test/"
LOAD = PageLoad("graph", "1", 100.0, (RequestTiming(URL, 200, 0.0, 100.0),))
OFF, ON = (Condition("p", "graph", tcp=TcpSpec(tfo=tfo)) for tfo in (False, True))


def later(ms: float, plt_ms: float = 0.0) -> PageLoad:
    """The load with an end of its request so much later, and of all of it."""
    request = replace(LOAD.requests[0], end_ms=100.0 + ms)
    return replace(LOAD, plt_ms=100.0 + plt_ms, requests=(request,))


def record(condition: Condition, seed: int, load: PageLoad | None = LOAD, **more: object) -> Record:
    trial = Trial(condition, seed, seed, "virtual", "7.3")
    made = Record(trial.id, trial, "ok", "env", load=load)
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loads", "differ"),
    [
        ([], None),
        ([LOAD], None),
        ([LOAD, LOAD, LOAD], False),
        ([LOAD, later(0.000256, 0.000768)], False),
        ([LOAD, LOAD, later(0.0, 2 * RESOLUTION_MS)], True),
        # A browser's load may end in the same frame although a request took longer.
        ([LOAD, later(2 * RESOLUTION_MS)], True),
        ([LOAD, replace(LOAD, requests=())], True),
    ],
)
def test_seeds_differ(loads: list[PageLoad], differ: bool | None) -> None:
    assert seeds_differ(loads) is differ


def test_one_cell_that_varies_is_enough() -> None:
    copies = [record(OFF, 0), record(OFF, 1)]
    assert nothing_varies(copies)
    assert nothing_varies([*copies, record(ON, 0), record(ON, 1)])
    assert not nothing_varies([*copies, record(ON, 0), record(ON, 1, later(1.0, 1.0))])


def test_what_does_not_count_says_nothing() -> None:
    assert not nothing_varies([])
    once = [record(OFF, 0)]
    assert not nothing_varies(once)
    assert not nothing_varies([*once, record(OFF, 1, outcome="unproven")])
    again = record(OFF, 0, attempt=2)  # of the same trial
    assert not nothing_varies([*once, again])
    warm = record(OFF, 1)
    assert not nothing_varies([*once, replace(warm, trial=replace(warm.trial, warm_up=True))])
    failed = record(ON, 0, None, outcome="failed")
    assert nothing_varies([*once, record(OFF, 1), failed])


@pytest.mark.parametrize(
    ("condition", "nothing"),
    [
        (OFF, True),
        (replace(OFF, link=LinkSpec(loss_pct=0.1)), False),
        (replace(OFF, think_spread_pct=1.0), False),
        (replace(OFF, start_spread_ms=1.0), False),
    ],
)
def test_knobs_that_ask_for_draws(condition: Condition, nothing: bool) -> None:
    assert draws_nothing(Experiment("e", "", (ON, condition))) is nothing
