"""Experiment file as the rules of a kind see it: values that are right one by one, and places."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """Values of an experiment file, after validation.

    ``where`` gives the place of a key, such as ``a.toml:3``.  ``in_real_time`` is whether its
    kernel runs on the machine's own clock, ``has_folder`` whether there is a folder of the user's
    files.  ``library`` has the texts of the files that conditions of its kind are, by name, and
    ``honours`` what each client can do that not every one can.
    """

    values: Mapping[str, Any]
    where: Callable[[KeyPath], str]
    in_real_time: bool
    has_folder: bool
    library: Mapping[str, str]
    honours: Mapping[str, frozenset[str]]

    def is_swept(self, name: str) -> bool:
        """Return whether the knob is a list in [sweep]."""
        return name in self.values.get("sweep", {})

    def at(self, path: KeyPath) -> Any:
        """Return the value at ``path``; ``None``: the file has none."""
        return value_at(self.values, path)

    def all_of(self, path: KeyPath, default: Any) -> list[Any]:
        """Return the values of the knob at ``path`` in all conditions: swept, fixed, or default."""
        if self.is_swept(path[-1]):
            return list(self.values["sweep"][path[-1]])
        fixed = self.at(path)
        return [default if fixed is None else fixed]

    def place(self, path: KeyPath) -> str:
        """Return where the knob at ``path`` is set and its key, as problems begin."""
        key = ("sweep", path[-1]) if self.is_swept(path[-1]) else path
        return f"{self.where(key)}: {'.'.join(key)}"


def value_at(values: Mapping[str, Any], path: KeyPath) -> Any:
    """Return what nested ``values`` have at ``path``; ``None``: nothing."""
    node: Any = values
    for part in path:
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def toml_text(value: Any) -> str:
    """Return ``value`` as a TOML file would have it, shortened if long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # a hexadecimal number of thousands of digits, or depth
        return f"this {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
