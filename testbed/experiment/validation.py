"""Validation of experiment files: pydantic models made from the knobs, and errors in plain words.

Strict: text is never taken for a number, an unknown key is an error, nothing is filled in here.
Each error is one line that names its place and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from testbed.base.suggest import did_you_mean, nearest
from testbed.experiment.knobs import (
    FIXED,
    KERNEL,
    LANED,
    RELATIVE,
    SWEPT,
    FileKnob,
    paths,
    unique,
)
from testbed.kinds.experiment_file import toml_text

_CONFIG = ConfigDict(extra="forbid", strict=True)

KeyPath = tuple[str, ...]
Where = Callable[[KeyPath], str]
_MOST_PROBLEMS = 100
_WRITTEN = SWEPT | RELATIVE
"""The knobs of the tables of trials."""
_AXES = _WRITTEN | LANED
"""The knobs of [sweep]."""


def _swept(kind: Any) -> Any:
    return Annotated[list[kind], Field(min_length=1), AfterValidator(unique)]


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model whose fields may all be left out; what was left out is not in its dump."""
    optional: dict[str, Any] = {key: (kind, None) for key, kind in fields.items()}
    return create_model(name, __config__=_CONFIG, **optional)


def _kinds(knobs: Mapping[str, FileKnob]) -> dict[str, Any]:
    return {name: knob.kind for name, knob in knobs.items()}


def _of(table: tuple[str, ...]) -> dict[str, Any]:
    return _kinds({name: knob for name, knob in _WRITTEN.items() if knob.table == table})


TABLES: dict[str, type[BaseModel]] = {
    **{
        table: _model(table.capitalize(), _of((table,)))
        for table in dict.fromkeys(knob.table[0] for knob in _WRITTEN.values() if knob.table)
    },
    "kernel": _model("Kernel", _kinds(KERNEL)),
    "sweep": _model("Sweep", {name: _swept(knob.kind) for name, knob in _AXES.items()}),
}

_File = _model("File", _of(()) | _kinds(FIXED) | TABLES)


def validate(
    document: Mapping[str, Any], names: Mapping[str, frozenset[str]]
) -> tuple[dict[str, Any], list[ErrorDetails]]:
    """Return the typed values that ``document`` sets, or every error in it (one is empty).

    ``names`` holds the valid names of each kind: page, client, reference, kernel.
    """
    try:
        model = _File.model_validate(dict(document), context=dict(names))
    except ValidationError as error:
        return {}, error.errors(include_url=False)
    values = model.model_dump(exclude_unset=True)
    if "sweep" in values:  # axes vary in the order of the file, not in that of the fields
        values["sweep"] = {axis: values["sweep"][axis] for axis in document["sweep"]}
    return values, []


def keys_of(table: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that ``table`` may have; ``()`` is the top of the file."""
    model = TABLES[table[0]] if table else _File
    return tuple(model.model_fields)


def describe(errors: list[ErrorDetails], document: Mapping[str, Any], where: Where) -> list[str]:
    """Return a line for each wrong key or value of ``document``; ``where`` gives a key's place."""
    lines: dict[tuple[str | int, ...], str] = {}
    for error in errors[:_MOST_PROBLEMS]:
        spot = _spot(error["loc"], document)
        key = tuple(str(part) for part in spot if isinstance(part, str))
        text = _sentence(error, key, spot)
        # A union of types reports once for each member: one line is enough.
        lines.setdefault(spot, f"{where(key)}: {_dotted(spot)}: {text}")
    more = len(errors) - _MOST_PROBLEMS
    return [*lines.values(), *([f"and {more} more like these"] if more > 0 else [])]


def _spot(loc: tuple[str | int, ...], document: Mapping[str, Any]) -> tuple[str | int, ...]:
    """Return the part of pydantic's location that is in the document: it adds names of types."""
    node: Any = document
    for depth, part in enumerate(loc):
        inside = (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if not inside:
            return loc[:depth]
        node = node[part]
    return loc


def _dotted(spot: tuple[str | int, ...]) -> str:
    text = ""
    for part in spot:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _sentence(error: ErrorDetails, key: KeyPath, spot: tuple[str | int, ...]) -> str:
    if error["type"] == "extra_forbidden":
        return _unknown_key(key)
    if error["type"] in ("not_listed", "twice"):
        return error["msg"]
    if len(key) == 1 and key[0] in TABLES:
        return f"{toml_text(error['input'])} is not a table; write it as [{key[0]}]"
    swept = key[0] == "sweep"
    knob = _AXES[key[1]] if swept else paths()[key]
    if swept and len(spot) == 2:
        given = toml_text(error["input"])
        return f"{given} is not a list of one or more values; each: {knob.allowed}"
    return _wrong_value(error["input"], knob)


def _wrong_value(value: Any, knob: FileKnob) -> str:
    hint = did_you_mean(value, knob.names) if isinstance(value, str) else ""
    return f"{toml_text(value)} is not {knob.allowed}{hint}"


def _unknown_key(key: KeyPath) -> str:
    table, name = key[:-1], key[-1]
    keys = keys_of(table)
    place = f"in [{table[0]}]" if table else "at the top of the file"
    homes = {path[-1]: path[:-1] for path in paths()}
    if table != ("sweep",) and name in homes:
        return f"does not belong {place}, but {_home(homes[name])}"
    if table == ("sweep",) and name in homes:
        return f"cannot be swept; allowed {place}: {', '.join(keys)}"
    near = nearest(name, keys)
    if near is None and (elsewhere := nearest(name, homes)) is not None:
        return f"no such key {place} (did you mean {elsewhere!r} {_home(homes[elsewhere])}?)"
    return f"no such key {place}{did_you_mean(name, keys)}; allowed: {', '.join(keys)}"


def _home(table: KeyPath) -> str:
    return f"in [{table[0]}]" if table else "at the top of the file, before any table"
