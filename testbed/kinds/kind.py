"""Description of a kind of trial: all that those who plan, run, judge and keep trials ask of one.

Standard library only: guests read it, too.  What performs and judges trials of the kind, and what
checks its experiment files, are modules of its folder, imported where they are needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from testbed.model import Spec
from testbed.model.knob import name_draws


def _none(_spec: Any) -> tuple[str, ...]:
    return ()


def _as_it_is(chosen: dict[str, Any]) -> dict[str, Any]:
    return chosen


def _without_words(_measured: Any) -> str:
    return ""


def describe_draws(spec: type, *more: str) -> str:
    """Return in words what a seed affects, by the declarations of knobs; ``more`` is no knob."""
    *others, last = (*name_draws(spec), *more)
    return f"a seed affects {', '.join(others)} and {last}" if others else f"a seed affects {last}"


@dataclass(frozen=True, slots=True)
class Relative:
    """Knobs of files that another takes the place of before there is a trial.

    The kind's module ``rules`` has ``replace_relative``, which does it.

    Attributes:
        spec: the type whose fields they are.
        makes: the knob that takes their place.
        of: the experiment's own knob that they are multiples of.
        product: from a multiple and what it is of to the value of ``makes``.
    """

    spec: type
    makes: str
    of: str
    product: Callable[[float, Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of trial.

    Attributes:
        name: its name in experiment files.
        package: that of its folder.
        spec: the type of its conditions, whose fields are its knobs.
        measured: the type of what a trial measures.
        kept_as: the key under which a record keeps that.
        kept_words: what the key holds, for the reference of results.
        trial: what one of its trials is, for the help of the knob ``kind``.
        no_draw: what to do where nothing varies between seeds, in a sentence.
        needed: knobs that a file must give.
        relative: knobs of files that another takes the place of before there is a trial.
        files: what the trials' folders may hold and records have digests of, beside captures.
        file_words: what files are that its trials alone leave, for the reference of results.
        library: the folder of the work tree that has its conditions as files, by name: the knob of
            the kind's name is one of them, and the condition has its text.
        has_rules: whether its module ``rules`` checks experiment files.
        short: whether its trials are so short that a guest imports what performs them beforehand.
        host_program: the module whose ``build_program`` compiles what the host kernel needs for its
            trials, a program that manages a server's connections; empty: it needs none.
        exclusions: why a trial cannot have these knobs, by their paths in a file.
        sysctls: why a file cannot set these sysctls, by end and name.
        commands: from a condition to the commands of a user's own that its trials run.
        complete: from the knobs of a condition to those that it has, where some follow.
        differ: whether two measurements differ by more than no seed can explain.
        words: a measurement in a few words, for a line of progress.
    """

    name: str
    package: str
    spec: type[Spec]
    measured: type
    kept_as: str
    kept_words: str
    trial: str
    no_draw: Callable[[], str]
    needed: tuple[str, ...] = ()
    relative: Relative | None = None
    files: tuple[str, ...] = ()
    file_words: Mapping[str, str] = field(default_factory=dict)
    library: str = ""
    has_rules: bool = False
    short: bool = False
    host_program: str = ""
    exclusions: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: Callable[[Any], tuple[str, ...]] = _none
    complete: Callable[[dict[str, Any]], dict[str, Any]] = _as_it_is
    differ: Callable[[Any, Any], bool] = operator.ne
    words: Callable[[Any], str] = _without_words

    @property
    def performance(self) -> str:
        """The name of the module that performs its trials."""
        return self._part("performance")

    @property
    def judgement(self) -> str:
        """The name of the module that judges its trials."""
        return self._part("judgement")

    def rules(self) -> ModuleType:
        """Return the module that checks its experiment files."""
        return import_module(self._part("rules"))

    def _part(self, name: str) -> str:
        return f"{self.package}.{name}"
