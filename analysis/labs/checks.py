"""Self-checks: an answer beside what the student's own run measured.

No right answer is kept anywhere: it is read from packets and records when it is checked.  A wrong
answer raises, which is what nbgrader grades by, and is told a hint and not the answer.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd


class WrongAnswerError(AssertionError):
    """An answer is not what was measured; the message is a hint."""

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the hint, and not where this module raised it."""
        return [f"Not yet. {self}"]


def near(answer: object, measured: float, within_pct: float, hint: str) -> None:
    """Check that ``answer`` is a number within so many percent of ``measured``.

    Raises:
        WrongAnswerError: it is not.
    """
    _require(_is_near(answer, measured, within_pct), hint)
    _praise(f"right, within {within_pct:g} % of what was measured")


def equal(answer: object, measured: object, hint: str) -> None:
    """Check that ``answer`` is the very count or text that was measured.

    Raises:
        WrongAnswerError: it is not.
    """
    same = answer == measured and isinstance(answer, bool) == isinstance(measured, bool)
    _require(same, hint)
    _praise("right")


def each(answer: object, measured: Mapping[Any, float], hint: str, within_pct: float = 0.0) -> None:
    """Check a dictionary: the keys of ``measured``, and for each a number as near as ``near`` asks.

    Raises:
        WrongAnswerError: a key is missing or one too many, or a number is none or too far away.
    """
    if not isinstance(answer, Mapping):
        raise WrongAnswerError(f"Answer with a dictionary. {hint}")
    _require(set(answer) == set(measured), f"Its keys are not the ones asked for. {hint}")
    right = sum(_is_near(answer[key], value, within_pct) for key, value in measured.items())
    _require(right == len(measured), f"{right} of {len(measured)} are right. {hint}")
    _praise(f"right, {right} of {len(measured)}")


def formula(
    answer: object, measured: pd.DataFrame, column: str, within_pct: float, hint: str
) -> None:
    """Check a function: for each row of ``measured`` it must come to the value in ``column``.

    Its parameters are columns of ``measured``, by their names.

    Raises:
        WrongAnswerError: it is no function, has other parameters, or is too far away in a row.
    """
    if not callable(answer):
        raise WrongAnswerError(f"Answer with a function. {hint}")
    names = list(inspect.signature(answer).parameters)
    _require(set(names) <= set(measured.columns), f"It has other parameters than asked for. {hint}")
    rows: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in measured.to_dict("records")
    ]
    right = sum(_is_near(_call(answer, row, names), row[column], within_pct) for row in rows)
    _require(right == len(rows), f"It is right in {right} of {len(rows)} measurements. {hint}")
    _praise(f"right in {right} of {len(rows)} measurements, within {within_pct:g} %")


def _call(function: Callable[..., Any], row: Mapping[str, Any], names: list[str]) -> object:
    try:
        return function(**{name: row[name] for name in names})
    except NotImplementedError:
        raise
    except Exception as error:
        raise WrongAnswerError(f"Your function raised {type(error).__name__}: {error}") from None


def _is_near(answer: object, measured: float, within_pct: float) -> bool:
    number = pd.api.types.is_number(answer) and not pd.api.types.is_bool(answer)
    if not number or isinstance(answer, complex):
        return False
    value = float(answer)  # type: ignore[arg-type]
    return math.isfinite(value) and abs(value - measured) <= abs(measured) * within_pct / 100.0


def _require(right: bool, hint: str) -> None:
    if not right:
        raise WrongAnswerError(hint)


def _praise(words: str) -> None:
    print(f"✓ {words}")
