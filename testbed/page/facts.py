"""What is known about a page beyond its table: ``page.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from testbed.errors import ConfigurationError

_TYPES: dict[str, type] = {
    "title": str,
    "url": str,
    "recorded": date,
    "source": str,
    "licence": str,
    "bodies": str,
    "deviations": list,
}


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a page; the keys of page.toml, see docs/pages.md."""

    title: str
    url: str
    recorded: date
    source: str
    licence: str
    bodies: str
    deviations: tuple[str, ...]


def read_facts(path: Path) -> PageFacts:
    """Read a ``page.toml``.

    Raises:
        ConfigurationError: every problem found, with file and key.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    problems = [
        f"{path}: unknown key {key!r}; the keys are {', '.join(_TYPES)}"
        for key in values
        if key not in _TYPES
    ]
    for key, kind in _TYPES.items():
        if key not in values:
            problems.append(f"{path}: key {key!r} is missing")
        elif type(values[key]) is not kind:
            problems.append(f"{path}: {key} is {values[key]!r}, expected a {kind.__name__}")
    if problems:
        raise ConfigurationError(problems)
    return PageFacts(**(values | {"deviations": tuple(values["deviations"])}))
