"""Types of stored data whose kind of trial is known: pydantic reads what the model leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, make_dataclass
from typing import Any, get_type_hints


def retyped(kept: type, renamed: Mapping[str, str] | None = None, **types: Any) -> type:
    """Return a dataclass like ``kept``, with other ``types`` of some fields, and other names."""
    hints = get_type_hints(kept)
    names = renamed or {}
    return make_dataclass(kept.__name__, [
        (names.get(each.name, each.name), types.get(each.name, hints[each.name]),
         field(default=each.default, default_factory=each.default_factory))
        for each in fields(kept)
    ])  # fmt: skip


def members(value: Any) -> dict[str, Any]:
    """Return the values of a ``retyped`` dataclass's fields by name, as they are."""
    return dict(vars(value))
