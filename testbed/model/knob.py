"""Declaration of a knob, beside its type and default in the field that holds it.

From it come the schema of experiment files, validation and its messages, ``--set`` and ``--only``,
headings and units in tables and figures, trial ids, and docs/knobs.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

FIRST_SCHEMA = 2
"""The oldest schema of results: what it had is in every trial's id."""
CALIBRATED = "the lab's calibration, held against theory"
READ_BACK = "what the kernel says of it, read back after it was set and after the load"
WRITTEN_DOWN = "the trial and the page's digest, which the guest writes down"
NO_PACKET = "nothing, as no packet depends on it"
READINGS = frozenset({CALIBRATED, READ_BACK, WRITTEN_DOWN, NO_PACKET})
"""What shows a knob besides checks; ``testbed.runner.performed`` holds them against the trial."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Description of a knob, beyond its name, type and default.

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
        draws: whether a load depends on its seed where the value is not the default.
        draws_of: the loads of which alone that holds, in a word such as "browsers".
        draws_where: the word of its value which alone draws.
        shown: what shows that it was performed: a check by its name, or one of ``READINGS``.
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
    draws: bool = False
    draws_of: str = ""
    draws_where: str = ""
    shown: str = ""


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
    """Return the knobs of ``spec`` and of the specs in it, in the order of their fields."""
    return tuple(_walk(spec, ()))


def _walk(spec: type, table: tuple[str, ...]) -> Iterator[Declared]:
    for part in _parts(spec):
        name, knob = part.field.name, part.knob
        if part.spec is not None:
            yield from _walk(part.spec, (*table, name))
        elif knob is not None:
            *place, key = knob.key.split(".") if knob.key else (*table, name)
            yield Declared(key, tuple(place), part.type, part.field.default, knob)


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a spec: its type, and the spec or the knob that it is, if it is one."""

    field: Field[Any]
    type: Any
    spec: type | None
    knob: Knob | None


@cache  # to evaluate annotations takes longer than all that is done with them
def _parts(spec: type) -> tuple[_Part, ...]:
    hints = get_type_hints(spec, include_extras=True)
    parts = []
    for each in fields(spec):
        hint = hints[each.name]
        words = getattr(hint, "__metadata__", ())
        parts.append(_Part(
            each,
            hint.__origin__ if words else hint,
            hint if is_dataclass(hint) and isinstance(hint, type) else None,
            next((word for word in words if isinstance(word, Knob)), None),
        ))  # fmt: skip
    return tuple(parts)


def changed(spec: Any) -> Iterator[tuple[Declared, Any]]:
    """Yield each knob of ``spec`` and of the specs in it that is not at its default: its value."""
    yield from _changed(spec, ())


def _changed(spec: Any, table: tuple[str, ...]) -> Iterator[tuple[Declared, Any]]:
    kind: type = type(spec)
    for part in _parts(kind):
        name, value = part.field.name, getattr(spec, part.field.name)
        if is_dataclass(value):  # whichever it is, where a field may hold one of several
            yield from _changed(value, (*table, name))
        elif part.knob is not None and value != part.field.default:
            yield Declared(name, table, part.type, part.field.default, part.knob), value


def draws(spec: Any) -> bool:
    """Return whether a load depends on its seed: a knob at any depth draws, by its declaration."""
    return any(
        each.knob.draws
        and (not each.knob.draws_where or each.knob.draws_where in str(value).split())
        for each, value in changed(spec)
    )


def name_draws(spec: type) -> tuple[str, ...]:
    """Return the knobs of ``spec`` that draw, as people set them, and of which loads."""
    names = []
    for each in declared(spec):
        if each.knob.draws:
            values = [value for value in get_args(each.type) if isinstance(value, str)]
            values = [value for value in values if value != each.default]
            name = " or ".join(f'{each.name} = "{value}"' for value in values) or each.name
            names.append(f"{name} (of {each.knob.draws_of})" if each.knob.draws_of else name)
    return tuple(names)


def identity(spec: Any) -> dict[str, Any]:
    """Return ``spec`` as plain data, without knobs at their defaults that schema 2 did not have.

    So a trial keeps the id that it had before a knob was invented, at any depth.
    """
    plain: dict[str, Any] = {}
    kind: type = type(spec)
    for part in _parts(kind):
        name = part.field.name
        value = getattr(spec, name)
        later = part.knob is not None and part.knob.since > FIRST_SCHEMA
        if is_dataclass(value):  # whichever it is, where a field may hold one of several
            inner = identity(value)
            # What came with a later schema is left out as its knobs are.
            plain |= {name: inner} if inner or "since" not in part.field.metadata else {}
        elif not (later and value == part.field.default):
            plain[name] = value
    return plain


def build(spec: type, values: Mapping[str, Any]) -> Any:
    """Return a ``spec``, and the specs in it, of values by knob; the rest has its default."""
    given: dict[str, Any] = {}
    for part in _parts(spec):
        name = part.field.name
        if part.spec is not None:
            given[name] = build(part.spec, values)
        elif name in values:
            given[name] = values[name]
    return spec(**given)


def with_defaults(spec: type, values: Any) -> Any:
    """Return plain data of a ``spec``, with the default of each field that it does not have.

    What an older revision wrote lacks the knobs that it did not know; everybody had the default.
    What is no table is left as it is.
    """
    if not isinstance(values, dict):
        return values
    whole = dict(values)
    for part in _parts(spec):
        name = part.field.name
        if part.spec is not None:
            whole[name] = with_defaults(part.spec, whole.get(name, {}))
        elif part.field.default is not MISSING:
            whole.setdefault(name, part.field.default)
    return whole


def read_spec(spec: type, plain: Mapping[str, Any]) -> Any:
    """Return the inverse of ``dataclasses.asdict``: a ``spec``, and the specs in it."""
    inner: dict[str, Any] = {each.name: each.default_factory for each in fields(spec)}
    return spec(**{
        name: read_spec(inner[name], value) if is_dataclass(inner.get(name)) else value
        for name, value in plain.items()
    })  # fmt: skip
