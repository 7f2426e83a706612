"""Check: one thing that evidence of a trial must show, with what it needs of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from testbed.model.knob import READINGS, changed
from testbed.proof.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Check:
    """A check of evidence, in the list of all (``testbed.mechanisms.checks``) or of a kind.

    ``proves`` says in a sentence what holds if it finds nothing, ``source`` where that is from.
    ``needs`` are attributes of ``Evidence``: of a trial that lacks one it says nothing.
    """

    name: str
    proves: str
    source: str
    needs: tuple[str, ...]
    find: Callable[[Any], Iterable[str]]

    def __call__(self, evidence: Evidence) -> Iterator[str]:
        """Yield a sentence for each thing that contradicts what it proves."""
        yield from self.find(evidence)

    def speaks_of(self, evidence: Evidence) -> bool:
        """Return whether there is all that it needs."""
        return all(map(evidence.has, self.needs))


def check(
    name: str, *needs: str, source: str = ""
) -> Callable[[Callable[[Any], Iterable[str]]], Check]:
    """Make a function of evidence a check; its docstring's first sentence says what it proves."""

    def make(find: Callable[[Any], Iterable[str]]) -> Check:
        paragraph, _, _ = inspect.cleandoc(find.__doc__ or "").partition("\n\n")
        return Check(name, " ".join(paragraph.split()), source, needs, find)

    return make


def of_each(parts: str) -> Callable[[Callable[[Any, Any], Iterable[str]]], Callable[[Any], Any]]:
    """Make a function that looks at one of the ``visits``, or ``logs``, one that looks at all."""

    def make(find: Callable[[Any, Any], Iterable[str]]) -> Callable[[Any], Iterator[str]]:
        @wraps(find)
        def find_all(seen: Evidence) -> Iterator[str]:
            for part in getattr(seen, parts):
                yield from map(part.say, find(seen, part))

        return find_all

    return make


def find_problems(evidence: Evidence, checks: Iterable[Check]) -> tuple[str, ...]:
    """Return what the checks that can speak of ``evidence`` find, and what none of them speaks of.

    No setting that is off its default is believed: something has to show that it was performed.
    """
    speaking = [each for each in checks if each.speaks_of(evidence)]
    found = [problem for each in speaking for problem in each(evidence)]
    shown = READINGS | {each.name for each in speaking}
    unshown = (
        say_unshown(".".join((*each.table, each.name)), value)
        for each, value in changed(evidence.trial.condition)
        if each.knob.shown not in shown
    )
    return tuple(dict.fromkeys((*found, *unshown)))


def say_unshown(knob: str, value: object) -> str:
    """Return the sentence for a setting that nothing shows."""
    return f"nothing shows that {knob} = {value} was performed"


def find_contradictions(evidence: Evidence, checks: Iterable[Check]) -> tuple[str, ...]:
    """Return what the checks that can speak of ``evidence`` find, in their order."""
    return tuple(
        problem for each in checks if each.speaks_of(evidence) for problem in each(evidence)
    )
