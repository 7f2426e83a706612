"""Self-checks: what passes, what is refused, and that a refusal tells no answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wings.papers.teaching import checks
from wings.papers.teaching.checks import WrongAnswerError

MEASURED = pd.DataFrame({"rtt_ms": [20.0, 200.0], "up_kbit": [256, 256], "took_ms": [41.0, 401.0],
                         "half": [20.5, 200.5]})  # fmt: skip


def check(answer: object) -> None:
    checks.formula(
        answer, MEASURED, "took_ms", given=["rtt_ms", "up_kbit"], within_pct=0.1, hint="two"
    )


@pytest.mark.parametrize("answer", [100, 100.0, 101.0, 99.0])
def test_a_number_near_enough_passes(answer: float, capsys: pytest.CaptureFixture[str]) -> None:
    checks.near(answer, 100.0, within_pct=1, hint="think")
    assert "✓" in capsys.readouterr().out


@pytest.mark.parametrize("answer", [None, 101.2, -100, math.nan, math.inf, 10**400])
def test_anything_else_gets_the_hint_and_not_the_answer(answer: Any) -> None:
    with pytest.raises(WrongAnswerError) as refused:
        checks.near(answer, 100.0, within_pct=1, hint="think")
    assert str(refused.value) == "think"
    assert refused.value._render_traceback_() == ["Not yet. think"]


OTHER_KINDS = [("1", "a text"), (True, "a bool"), (np.True_, "a bool"), (1j, "a complex"),
               ([1], "a list"), (pd.Series([1]), "a Series"),
               (pd.DataFrame({"one": [1, 2]}), "a DataFrame"), (pd.Index([1]), "an Index"),
               (np.array([1, 1]), "an ndarray"), (pd.NA, "an NAType")]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind"), OTHER_KINDS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_told_so_before_the_hint(answer: Any, kind: str) -> None:
    said = f"^Answer with a number, not {kind}. think$"
    with pytest.raises(WrongAnswerError, match=said):
        checks.near(answer, 1.0, within_pct=1, hint="think")
    with pytest.raises(WrongAnswerError, match=said):
        checks.equal(answer, 1, hint="think")
    with pytest.raises(WrongAnswerError, match=said):
        checks.each({1: answer}, {1: 1.0}, hint="think")
    with pytest.raises(WrongAnswerError, match=f"^Return a number, not {kind}. two$"):
        check(lambda rtt_ms: answer)


def test_a_text_is_asked_for_as_one() -> None:
    checks.equal("7051", "7051", hint="look")
    for answer, said in ((7051, "Answer with a text, not a number. look"),
                         (pd.Series(["7051"]), "Answer with a text, not a Series. look"),
                         ("7052", "look"), (None, "look")):  # fmt: skip
        with pytest.raises(WrongAnswerError, match=f"^{said}$"):
            checks.equal(answer, "7051", hint="look")


def test_a_list_is_as_good_as_a_tuple() -> None:
    measured = ("amazon", 20.0)
    for answer in (measured, ["amazon", 20], ("amazon", np.float64(20))):
        checks.equal(answer, measured, hint="row")
    for wrong, said in ((["amazon", 100], "row"), (["amazon"], "row"), ((None, None), "row"),
                        ("amazon", "Answer with a tuple, not a text. row"),
                        (pd.Series(["amazon", 20]), "Answer with a tuple, not a Series. row"),
                        (("amazon", pd.Series([20.0])),
                         "Answer with a number, not a Series. row")):  # fmt: skip
        with pytest.raises(WrongAnswerError, match=f"^{said}$"):
            checks.equal(wrong, measured, hint="row")


@pytest.mark.parametrize("answer", [0, 2, None, "1", True])
def test_a_count_is_exact_and_no_truth_value(answer: Any) -> None:
    checks.equal(1, 1, hint="count")
    with pytest.raises(WrongAnswerError, match="count"):
        checks.equal(answer, 1, hint="count")


def test_a_dictionary_needs_its_keys_and_each_number() -> None:
    checks.each({1: 10, 2: 20.1}, {1: 10.0, 2: 20.0}, within_pct=1, hint="both")
    for answer, said in ((None, "Answer with a dictionary"), ({1: 10}, "keys are not the ones"),
                         ({1: 10, 2: 20, 3: 30}, "keys are not the ones"),
                         ({1: 10, 2: None}, "1 of 2 are right")):  # fmt: skip
        with pytest.raises(WrongAnswerError, match=said):
            checks.each(answer, {1: 10.0, 2: 20.0}, within_pct=1, hint="both")


def test_a_formula_holds_in_every_measurement() -> None:
    check(lambda rtt_ms: 2 * rtt_ms + 1)
    check(lambda rtt_ms, one=1: 2 * rtt_ms + one)
    for answer, said in ((41.0, "Answer with a function"),
                         (lambda rtt_ms: 41.0, "right in 1 of 2 measurements. two"),
                         (lambda rtt_ms: rtt_ms / 0, "raised ZeroDivisionError"),
                         (lambda rtt_ms: None, "right in 0 of 2"),
                         (lambda rtt_ms: 10**400, "right in 0 of 2"),
                         (int, "Answer with a function that you wrote. two")):  # fmt: skip
        with pytest.raises(WrongAnswerError, match=said):
            check(answer)


@pytest.mark.parametrize("answer",
                         [lambda delay: delay, lambda took_ms: took_ms, lambda half: 2 * half,
                          lambda *rtt: 41.0, lambda **row: row["took_ms"]])  # fmt: skip
def test_a_formula_gets_what_the_question_gives_and_no_result(answer: Callable[..., Any]) -> None:
    with pytest.raises(WrongAnswerError, match=r"other parameters than asked for\. two"):
        check(answer)


def test_a_formula_that_is_not_written_yet_says_so() -> None:
    def later(rtt_ms: float) -> float:
        raise NotImplementedError

    with pytest.raises(WrongAnswerError, match="is not written yet") as refused:
        check(later)
    assert refused.value.__suppress_context__
