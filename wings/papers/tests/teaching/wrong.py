"""Wrong answers made of right ones: what a self-check has to refuse, whatever the question was.

A notebook's kernel imports this module: there the right answers are.
"""

from __future__ import annotations

import functools
import inspect
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from numpy import integer

from wings.papers.teaching.checks import WrongAnswerError


def unrefused(
    lab: dict[str, Any], names: Sequence[str], beliefs: Mapping[str, str], checks: Sequence[str]
) -> list[str]:
    """Return what passes all ``checks`` of a solved ``lab`` although it is wrong.

    Each of ``names`` is answered wrongly in turn, then as ``beliefs`` do; the lab, a notebook's
    globals, is as before afterwards.
    """
    passed = []
    for name in names:
        right = lab[name]
        for label, wrong in wrong_answers(right):
            lab[name] = wrong
            passed += [] if refused(lab, checks) else [f"{name}: {label}"]
        lab[name] = right
    for label, source in beliefs.items():
        name = source.partition(" = ")[0]
        right = lab[name]
        exec(source, lab)  # noqa: S102 - as a cell does
        passed += [] if refused(lab, checks) else [label]
        lab[name] = right
    return passed


def refused(lab: dict[str, Any], checks: Sequence[str]) -> bool:
    """Whether one of ``checks`` refuses an answer; any other error is one of the check's own."""
    for source in checks:
        try:
            with redirect_stdout(io.StringIO()):
                exec(source, lab)  # noqa: S102 - as a cell does
        except WrongAnswerError:
            return True
    return False


def wrong_answers(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may be answered wrongly instead of ``answer``, each with a name."""
    yield "nothing", None
    if isinstance(answer, dict):
        yield from _wrong_dictionaries(answer)
    elif isinstance(answer, tuple):
        for place in range(len(answer)):
            for name, wrong in _wrong_values(answer[place]):
                yield f"{place}: {name}", (*answer[:place], wrong, *answer[place + 1 :])
        yield "shorter", answer[:-1]
    elif callable(answer):
        yield from _wrong_functions(answer)
    else:
        yield from _wrong_values(answer)


def _wrong_dictionaries(answer: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in answer.items():
        for name, wrong in _wrong_values(value):
            yield f"{key}: {name}", {**answer, key: wrong}
        yield f"no {key}", {other: answer[other] for other in answer if other != key}
    yield "one too many", {**answer, "another": 1}
    yield "values alone", list(answer.values())


def _wrong_functions(answer: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    def made(change: Callable[[Any], Any]) -> Callable[..., Any]:
        @functools.wraps(answer)
        def changed(*args: Any, **kwargs: Any) -> Any:
            return change(answer(*args, **kwargs))

        return changed

    yield "ten percent more", made(lambda value: value * 1.1)
    yield "ten percent less", made(lambda value: value * 0.9)
    yield "negative", made(lambda value: -value)
    yield "without an answer", made(lambda value: None)
    yield "not a number", made(lambda value: math.nan)
    yield "a text", made(str)
    yield "no function", 1.0
    yield "other parameters", lambda something: something
    first: list[Any] = []

    def always_the_first(value: Any) -> Any:
        first.append(value)
        return first[0]

    yield "a constant", made(always_the_first)
    parameters = list(inspect.signature(answer).parameters)
    if len(parameters) > 1:
        yield "raises", made(lambda value: 1 / 0)


def _wrong_values(value: Any) -> Iterator[tuple[str, Any]]:
    yield "nothing", None
    if isinstance(value, str):
        yield "backwards", value[::-1]
        yield "empty", ""
        return
    if isinstance(value, int | integer):
        yield "one more", value + 1
        yield "one less", value - 1
    yield "ten percent more", value * 1.1
    yield "ten percent less", value * 0.9
    yield "negative", -value
    yield "zero", 0
    yield "endless", math.inf
    yield "not a number", math.nan
    yield "a text", str(value)
    yield "true", True
