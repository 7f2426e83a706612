"""Self-checks: an answer beside what the student's own run measured.

No right answer is kept anywhere: it is read from packets and records when it is checked.  A wrong
answer raises, which is what nbgrader grades by, and is told a hint and not the answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
    _require(_is_near(answer, measured, within_pct, hint), hint)
    _praise(f"right, within {within_pct:g} % of what was measured")


def equal(answer: object, measured: object, hint: str) -> None:
    """Check that ``answer`` is the very count or text that was measured, or the tuple of them.

    Raises:
        WrongAnswerError: it is not.
    """
    _require(_is_same(answer, measured, hint), hint)
    _praise("right")


def each(answer: object, measured: Mapping[Any, float], hint: str, within_pct: float = 0.0) -> None:
    """Check a dictionary: the keys of ``measured``, and for each a number as near as ``near`` asks.

    Raises:
        WrongAnswerError: a key is missing or one too many, or a number is none or too far away.
    """
    if not isinstance(answer, Mapping):
        raise WrongAnswerError(f"Answer with a dictionary. {hint}")
    _require(set(answer) == set(measured), f"Its keys are not the ones asked for. {hint}")
    right = sum(_is_near(answer[key], value, within_pct, hint) for key, value in measured.items())
    _require(right == len(measured), f"{right} of {len(measured)} are right. {hint}")
    _praise(f"right, {right} of {len(measured)}")


def formula(answer: object, measured: pd.DataFrame, column: str, *, given: Sequence[str],
            within_pct: float, hint: str) -> None:  # fmt: skip
    """Check a function: for each row of ``measured`` it must return the value in ``column``.

    Its parameters are the columns ``given`` in the question; further ones need a default.

    Raises:
        WrongAnswerError: it is no function, has other parameters, or is too far away in a row.
    """
    if not callable(answer):
        raise WrongAnswerError(f"Answer with a function. {hint}")
    names = _parameters(answer, given, hint)
    rows: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in measured.to_dict("records")
    ]
    right = sum(_is_near(_call(answer, row, names), row[column], within_pct, hint, verb="Return")
                for row in rows)  # fmt: skip
    _require(right == len(rows), f"It is right in {right} of {len(rows)} measurements. {hint}")
    _praise(f"right in {right} of {len(rows)} measurements, within {within_pct:g} %")


def _parameters(function: Callable[..., Any], names_given: Sequence[str], hint: str) -> list[str]:
    """Return the parameters to call ``function`` with, all of them of ``names_given``."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions have no signature
        raise WrongAnswerError(f"Answer with a function that you wrote. {hint}") from None
    names = [name for name, parameter in parameters.items() if name in names_given
             or parameter.default is parameter.empty]  # fmt: skip
    _require(set(names) <= set(names_given), f"It has other parameters than asked for. {hint}")
    return names


def _call(function: Callable[..., Any], row: Mapping[str, Any], names: list[str]) -> object:
    try:
        return function(**{name: row[name] for name in names})
    except NotImplementedError:
        message = "Your function, or one that it calls, is not written yet."
        raise WrongAnswerError(message) from None
    except Exception as error:
        raise WrongAnswerError(f"Your function raised {type(error).__name__}: {error}") from None


def _is_same(answer: object, measured: object, hint: str) -> bool:
    if isinstance(answer, list) and isinstance(measured, tuple):
        answer = tuple(answer)
    if answer is None:
        return False
    expected, kind = _kind(measured), _kind(answer)
    _require(kind == expected, f"Answer with {expected}, not {kind}. {hint}")
    if isinstance(answer, tuple) and isinstance(measured, tuple):
        return len(answer) == len(measured) and all(
            _is_same(item, measured_item, hint)
            for item, measured_item in zip(answer, measured, strict=True)
        )
    return bool(answer == measured)


def _is_near(
    answer: Any, measured: float, within_pct: float, hint: str, verb: str = "Answer with"
) -> bool:
    if answer is None:
        return False
    expected, kind = _kind(measured), _kind(answer)
    _require(kind == expected, f"{verb} {expected}, not {kind}. {hint}")
    away = abs(measured) * within_pct / 100.0
    return bool(measured - away <= answer <= measured + away)


def _kind(value: object) -> str:
    """Return the kind of ``value`` in words; all numbers are of one kind."""
    types = pd.api.types
    if types.is_number(value) and not (types.is_bool(value) or types.is_complex(value)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    name = type(value).__name__
    # "n" for ndarray and NAType.
    return f"{'an' if name[0].lower() in 'aeion' else 'a'} {name}"


def _require(right: bool, hint: str) -> None:
    if not right:
        raise WrongAnswerError(hint)


def _praise(words: str) -> None:
    print(f"✓ {words}")
