"""Knobs of experiment files: the model's declarations as types that validate, by place and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from testbed.base.suggest import did_you_mean
from testbed.experiment.settings import check_values
from testbed.kinds import KINDS
from testbed.kinds.kind import Relative
from testbed.model import Experiment
from testbed.model.knob import Declared, Knob, declared
from testbed.model.settings import FAMILIES, Value

KeyPath = tuple[str, ...]
_QUANTITIES = {"ms": "number of milliseconds", "s": "number of seconds", "%": "percentage"}


@dataclass(frozen=True, slots=True)
class FileKnob:
    """A knob as an experiment file has it.

    ``kind`` validates its values and ``allowed`` puts them into words; ``names`` are all of them
    where there are few; ``text`` says that they are text.
    """

    declared: Declared
    kind: Any
    allowed: str
    names: tuple[str, ...] = ()
    text: bool = False

    @property
    def table(self) -> KeyPath:
        """The table that it is in; ``()`` is the top of the file."""
        return self.declared.table

    @property
    def path(self) -> KeyPath:
        """Its full path in the file, without [sweep]."""
        return (*self.declared.table, self.declared.name)

    @property
    def default(self) -> str:
        """Its default as a file would have it; empty where there is none."""
        value = self.declared.default
        if value is None:
            return self.declared.knob.absent
        if value is MISSING or value in ((), {}):
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)


def unique(values: list[Any]) -> list[Any]:
    """Return ``values``, refused when one of them is there twice."""
    twice = [value for index, value in enumerate(values) if value in values[:index]]
    if twice:
        problem = f"{twice[0]!r} is in the list twice"
        raise PydanticCustomError("twice", "{problem}", {"problem": problem})
    return values


def _of(each: Declared) -> FileKnob:
    knob, optional = each.knob, NoneType in get_args(each.type)
    plain = (
        next(member for member in get_args(each.type) if member is not NoneType)
        if optional
        else each.type
    )
    if each.name in FAMILIES:
        check = AfterValidator(partial(check_values, each.name))
        return FileKnob(each, Annotated[dict[str, Value], check], knob.allowed)
    if knob.listed == "kind":
        plain = Literal[tuple(KINDS)]
    elif knob.listed:
        check = AfterValidator(partial(_check_listed, knob.listed))
        return FileKnob(each, Annotated[str, check], f"the name of a {knob.listed}", text=True)
    if get_origin(plain) is Literal:
        names: tuple[str, ...] = get_args(plain)
        words = " or ".join(f'"{name}"' for name in names)
        return FileKnob(each, plain, words, names, text=True)
    if plain is bool:
        return FileKnob(each, bool, "true or false")
    if plain is str:
        bounds = StringConstraints(
            pattern=knob.pattern or None, min_length=None if knob.low is None else int(knob.low)
        )
        return FileKnob(each, Annotated[str, bounds], knob.allowed, text=True)
    if get_origin(plain) is tuple:
        size = Field(min_length=int(knob.low or 0), max_length=int(knob.high or 0))
        kind: Any = Annotated[list[str], size, AfterValidator(unique)]
        return FileKnob(each, kind, knob.allowed, text=True)
    finite = False if plain is float else None  # what bounds would let pass
    kind = Annotated[plain, Field(ge=knob.low, gt=knob.above, le=knob.high, allow_inf_nan=finite)]
    if knob.absent:
        kind = kind | Literal[knob.absent]
    return FileKnob(each, kind, knob.allowed or _numbers(each, plain))


def _numbers(each: Declared, plain: type | UnionType) -> str:
    """Return the numbers that a knob takes, in words."""
    knob = each.knob
    what = "whole number" if plain is int else _QUANTITIES.get(knob.unit, "number")
    if knob.above is not None:
        return f"a {what} above {knob.above:.10g}, up to {knob.high:.10g}"
    return f"a {what} from {knob.low:.10g} to {knob.high:.10g}"


def _check_listed(what: str, name: str, info: ValidationInfo) -> str:
    """Return a name from the catalogue that validation is given as its context.

    Any goes of what the catalogue does not have at all.
    """
    names: Mapping[str, frozenset[str]] = info.context or {}
    valid = names.get(what, frozenset({name}))
    if name in valid:
        return name
    problem = f"no {what} is named {name!r}{did_you_mean(name, valid)}"
    allowed = ", ".join(sorted(valid)) or f"none, as there is no {what} here"
    raise PydanticCustomError("not_listed", "{problem}; allowed: {allowed}", {
        "problem": problem, "allowed": allowed,
    })  # fmt: skip


OF_KIND: dict[str, tuple[str, ...]] = {
    name: tuple(each.name for each in declared(kind.spec)) for name, kind in KINDS.items()
}
"""The names of the knobs that a kind of trial has."""
SWEPT: dict[str, FileKnob] = {
    each.name: _of(each) for kind in KINDS.values() for each in declared(kind.spec)
}
"""The knobs that make a trial of any kind: fixed in their table, or a list in [sweep]."""

MULTIPLES: dict[str, Relative] = {
    each.name: kind.relative
    for kind in KINDS.values()
    if kind.relative is not None
    for each in declared(kind.relative.spec)
}
"""What becomes of the knobs that are no trial's."""
RELATIVE: dict[str, FileKnob] = {
    each.name: _of(each) for relative in MULTIPLES.values() for each in declared(relative.spec)
}
"""Knobs of files and options that become others before there is a trial."""

_WHOLE = {each.name: _of(each) for each in declared(Experiment)}
KERNEL: dict[str, FileKnob] = {
    name: knob for name, knob in _WHOLE.items() if knob.table == ("kernel",)
}
"""On which kernel the experiment runs; on both of two ``versions``, one after the other."""

FIXED: dict[str, FileKnob] = {name: knob for name, knob in _WHOLE.items() if not knob.table}
"""The knobs that hold for a whole experiment."""

LANED: dict[str, FileKnob] = {"root": FIXED["root"]}
"""Those of them that may be swept: each value has results of its own."""


def kinds_with(name: str) -> str:
    """Return the kinds of trial that have the knob ``name``, in words."""
    return " or ".join(f'"{kind}"' for kind, names in OF_KIND.items() if name in names)


def paths() -> dict[KeyPath, FileKnob]:
    """Return every knob by its full path in the file, without [sweep]."""
    return {knob.path: knob for knob in (SWEPT | RELATIVE | FIXED | KERNEL).values()}


def meaning_of(knob: Knob) -> str:
    """Return what a knob does; of the knob ``kind`` also what trials of each kind are."""
    if knob.listed != "kind":
        return knob.help
    *others, last = (kind.trial for kind in KINDS.values())
    return f"{knob.help}: {', '.join(others)}, or {last}."


def explain(knob: FileKnob) -> dict[str, str | bool | int]:
    """Return all that is known of a knob, for people and programs."""
    about = knob.declared.knob
    return {
        "knob": ".".join(knob.path),
        "meaning": meaning_of(about),
        "allowed": knob.allowed,
        "default": knob.default,
        "unit": about.unit,
        "swept": knob.declared.name in SWEPT | RELATIVE | LANED,
        "since": about.since,
    }
