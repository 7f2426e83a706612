from __future__ import annotations

import pytest

from testbed.base.errors import ConfigurationError
from testbed.experiment.label import label, varying
from testbed.experiment.options import select
from testbed.model import Condition, Experiment, Trial


def test_clauses_narrow_and_equal_keys_widen(experiment: Experiment) -> None:
    chosen = select(experiment, "page=amazon, rtt_ms=100").conditions_as(Condition)
    assert [(c.page, c.link.rtt_ms, c.tcp.tfo) for c in chosen] == [
        ("amazon", 100.0, False),
        ("amazon", 100.0, True),
    ]
    assert len(select(experiment, "rtt_ms=20,rtt_ms=100.0,tfo=true").conditions) == 4
    assert (
        len(select(experiment, "link.rtt_ms=20,requests_per_connection=unlimited").conditions) == 4
    )


def test_order_is_kept(experiment: Experiment) -> None:
    chosen = select(experiment, "tfo=true").conditions
    assert list(chosen) == [c for c in experiment.conditions_as(Condition) if c.tcp.tfo]


@pytest.mark.parametrize(
    ("only", "complaints"),
    [
        ("pgae=amazon", ["no knob is named 'pgae' (did you mean 'page'?)"]),
        ("page=nytimes", ["page is one of amazon, wsj"]),
        ("rtt_ms=30,tfo=maybe", ["rtt_ms is one of 20, 100", "tfo is one of false, true"]),
        ("page", ["key=value"]),
        ("", ["key=value"]),
    ],
)
def test_what_matches_nothing_is_reported_with_what_there_is(
    experiment: Experiment, only: str, complaints: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select(experiment, only)
    assert len(caught.value.problems) == len(complaints)
    for problem, complaint in zip(caught.value.problems, complaints, strict=True):
        assert problem.startswith("--only ")
        assert complaint in problem


def test_values_that_exist_but_never_together(experiment: Experiment) -> None:
    part = Experiment("x", "x", (experiment.conditions[0], experiment.conditions[-1]))
    with pytest.raises(ConfigurationError, match="at once"):
        select(part, "page=amazon,rtt_ms=100")


def test_labels_name_what_varies(experiment: Experiment, trials: tuple[Trial, ...]) -> None:
    names = varying(experiment.conditions)
    assert names == ("page", "rtt_ms", "tfo")
    assert label(trials[0], names) == "page=amazon rtt_ms=20 tfo=false"
    assert label(trials[0], varying(experiment.conditions[:1]), seeds=True) == "page=amazon seed=0"
