"""The shape of an experiment file, as pydantic models made from the knobs.

Strict: text is never taken for a number, an unknown key is an error, nothing is filled in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from testbed.experiment.knobs import FIXED, KERNEL, SWEPT, FileKnob, unique

_CONFIG = ConfigDict(extra="forbid", strict=True)


def _swept(kind: Any) -> Any:
    return Annotated[list[kind], Field(min_length=1), AfterValidator(unique)]


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """A model whose fields may all be left out; what was left out is not in its dump."""
    optional: dict[str, Any] = {key: (kind, None) for key, kind in fields.items()}
    return create_model(name, __config__=_CONFIG, **optional)


def _kinds(knobs: Mapping[str, FileKnob]) -> dict[str, Any]:
    return {name: knob.kind for name, knob in knobs.items()}


def _of(table: tuple[str, ...]) -> dict[str, Any]:
    return _kinds({name: knob for name, knob in SWEPT.items() if knob.table == table})


TABLES: dict[str, type[BaseModel]] = {
    "link": _model("Link", _of(("link",))),
    "tcp": _model("Tcp", _of(("tcp",))),
    "kernel": _model("Kernel", _kinds(KERNEL)),
    "sweep": _model("Sweep", {name: _swept(knob.kind) for name, knob in SWEPT.items()}),
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
    """The keys that may stand in ``table``; ``()`` is the top of the file."""
    model = TABLES[table[0]] if table else _File
    return tuple(model.model_fields)
