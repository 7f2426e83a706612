"""Self-checks: what passes, what is refused, and that a refusal tells no answer."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from analysis.labs import checks
from analysis.labs.checks import WrongAnswerError

MEASURED = pd.DataFrame({"rtt_ms": [20.0, 200.0], "up_kbit": [256, 256], "took_ms": [41.0, 401.0]})


@pytest.mark.parametrize("answer", [100, 100.0, 101.0, 99.0])
def test_a_number_near_enough_passes(answer: float, capsys: pytest.CaptureFixture[str]) -> None:
    checks.near(answer, 100.0, within_pct=1, hint="think")
    assert "✓" in capsys.readouterr().out


@pytest.mark.parametrize(
    "answer", [None, 101.2, -100, "100", math.nan, math.inf, True, 100j, [100]]
)
def test_anything_else_gets_the_hint_and_not_the_answer(answer: Any) -> None:
    with pytest.raises(WrongAnswerError) as refused:
        checks.near(answer, 100.0, within_pct=1, hint="think")
    assert str(refused.value) == "think"
    assert refused.value._render_traceback_() == ["Not yet. think"]


@pytest.mark.parametrize("answer", [0, 2, None, "1", True])
def test_a_count_is_exact_and_no_truth_value(answer: Any) -> None:
    checks.equal(1, 1, hint="count")
    with pytest.raises(WrongAnswerError, match="count"):
        checks.equal(answer, 1, hint="count")


def test_a_dictionary_needs_its_keys_and_each_number() -> None:
    checks.each({1: 10, 2: 20.1}, {1: 10.0, 2: 20.0}, within_pct=1, hint="both")
    for answer, said in (
        (None, "Answer with a dictionary"),
        ({1: 10}, "keys are not the ones"),
        ({1: 10, 2: 20, 3: 30}, "keys are not the ones"),
        ({1: 10, 2: None}, "1 of 2 are right"),
    ):
        with pytest.raises(WrongAnswerError, match=said):
            checks.each(answer, {1: 10.0, 2: 20.0}, within_pct=1, hint="both")


def test_a_formula_holds_in_every_measurement() -> None:
    checks.formula(lambda rtt_ms: 2 * rtt_ms + 1, MEASURED, "took_ms", within_pct=0.1, hint="two")
    for answer, said in (
        (41.0, "Answer with a function"),
        (lambda rtt_ms: 41.0, "right in 1 of 2 measurements. two"),
        (lambda delay: delay, "other parameters"),
        (lambda rtt_ms: rtt_ms / 0, "raised ZeroDivisionError"),
        (lambda rtt_ms: None, "right in 0 of 2"),
    ):
        with pytest.raises(WrongAnswerError, match=said):
            checks.formula(answer, MEASURED, "took_ms", within_pct=0.1, hint="two")


def test_a_formula_that_is_not_written_yet_says_so() -> None:
    def later(rtt_ms: float) -> float:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        checks.formula(later, MEASURED, "took_ms", within_pct=1, hint="two")
