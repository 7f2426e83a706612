"""The declaration of a knob, beside its type and default in the field that holds it.

From it come the schema of experiment files, validation and its messages, ``--set`` and ``--only``,
headings and units in tables and figures, trial ids, and docs/knobs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

FIRST_SCHEMA = 2
"""The oldest schema of results: what it had is in every trial's id."""


@dataclass(frozen=True, slots=True)
class Knob:
    """What there is to say of a knob beyond its name, type and default.

    Attributes:
        help: what it does, in a sentence.
        label: its heading in tables and figures.
        unit: of its values, as people write it; the name ends in it.
        low, high: the smallest and the largest value; ``above`` instead of ``low`` excludes it.
        pattern: what a text has to match, which ``allowed`` puts into words.
        listed: values are names from the catalogue of this kind (page, client, reference, kernel).
        absent: what ``None`` is called in an experiment file; empty: leave the knob out.
        words: values that are short in a file and clearer in a table.
        allowed: the values in words, where type and bounds do not say it.
        key: where it is in an experiment file, if not under its own name in its own table.
        since: the schema of results that had it first.
    """

    help: str
    label: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    pattern: str = ""
    listed: str = ""
    absent: str = ""
    words: MappingProxyType[Any, str] = field(default_factory=lambda: MappingProxyType({}))
    allowed: str = ""
    key: str = ""
    since: int = FIRST_SCHEMA


@dataclass(frozen=True, slots=True)
class Declared:
    """A knob where it is declared: its field's name and type, its place in the file, its default.

    ``table`` is ``()`` at the top of the file; ``default`` is MISSING where there is none.
    """

    name: str
    table: tuple[str, ...]
    type: Any
    default: Any
    knob: Knob


@cache
def declared(spec: type) -> tuple[Declared, ...]:
    """The knobs of ``spec`` and of the specs in it, in the order of their fields."""
    return tuple(_walk(spec, ()))


def _walk(spec: type, table: tuple[str, ...]) -> Iterator[Declared]:
    hints = get_type_hints(spec, include_extras=True)
    for each in fields(spec):
        hint = hints[each.name]
        if is_dataclass(hint) and isinstance(hint, type):
            yield from _walk(hint, (*table, each.name))
            continue
        knob = next(
            (word for word in getattr(hint, "__metadata__", ()) if type(word) is Knob), None
        )
        if knob is None:
            continue
        *place, name = knob.key.split(".") if knob.key else (*table, each.name)
        yield Declared(name, tuple(place), hint.__origin__, each.default, knob)


def identity(spec: Any) -> dict[str, Any]:
    """``spec`` as plain data, without knobs at their defaults that schema 2 did not have.

    So a trial keeps the id that it had before a knob was invented, at any depth.
    """
    found: dict[str, Any] = {}
    kind: type = type(spec)
    later = _later(kind)
    for each in fields(spec):
        value = getattr(spec, each.name)
        if is_dataclass(value):
            found[each.name] = identity(value)
        elif not (each.name in later and value == each.default):
            found[each.name] = value
    return found


@cache
def _later(spec: type) -> frozenset[str]:
    hints = get_type_hints(spec, include_extras=True)
    return frozenset(
        name
        for name, hint in hints.items()
        for word in getattr(hint, "__metadata__", ())
        if isinstance(word, Knob) and word.since > FIRST_SCHEMA
    )


def build(spec: type, values: Mapping[str, Any]) -> Any:
    """A ``spec``, and the specs in it, of values by the knobs' names; the rest has its default."""
    hints = get_type_hints(spec)
    given: dict[str, Any] = {}
    for each in fields(spec):
        hint = hints[each.name]
        if is_dataclass(hint) and isinstance(hint, type):
            given[each.name] = build(hint, values)
        elif each.name in values:
            given[each.name] = values[each.name]
    return spec(**given)


def with_defaults(spec: type, values: Any) -> Any:
    """Plain data of a ``spec``, with the default of each field that it does not have.

    What an older revision wrote lacks the knobs that it did not know; everybody had the default.
    What is no table is left as it is.
    """
    if not isinstance(values, dict):
        return values
    hints = get_type_hints(spec, include_extras=True)
    whole = dict(values)
    for each in fields(spec):
        hint = hints[each.name]
        if is_dataclass(hint) and isinstance(hint, type):
            whole[each.name] = with_defaults(hint, whole.get(each.name, {}))
        elif each.default is not MISSING:
            whole.setdefault(each.name, each.default)
    return whole
