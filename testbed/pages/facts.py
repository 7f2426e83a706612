"""What is known about a page beyond its exchanges: ``page.toml``, read and written."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError

FACTS_NAME = "page.toml"
_TYPES: dict[str, type] = {
    "title": str,
    "url": str,
    "recorded": date,
    "source": str,
    "licence": str,
    "bodies": str,
    "deviations": list,
}
_OPTIONAL: dict[str, type] = {"pinned": bool, "recipe": dict}
# What TOML 1.0 does not allow in a basic string, and the two that mean something there.
_ESCAPED = re.compile('[\x00-\x1f\x7f"\\\\]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a page; the keys of page.toml, see docs/pages.md.

    ``recipe`` is the raw table of a page that is installed from packages.
    """

    title: str
    url: str
    recorded: date
    source: str
    licence: str
    bodies: str
    deviations: tuple[str, ...]
    pinned: bool = False
    recipe: dict[str, Any] | None = None


def read_facts(path: Path) -> PageFacts:
    """Read a ``page.toml``.

    Raises:
        ConfigurationError: every problem found, with file and key.
    """
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from None
    kinds = _TYPES | _OPTIONAL
    problems = [
        f"{path}: unknown key {key!r}; the keys are {', '.join(kinds)}"
        for key in values
        if key not in kinds
    ]
    for key, kind in kinds.items():
        if key not in values:
            if key in _TYPES:
                problems.append(f"{path}: key {key!r} is missing")
        elif type(values[key]) is not kind:
            problems.append(f"{path}: {key} is {values[key]!r}, expected a {kind.__name__}")
    deviations = values.get("deviations")
    if isinstance(deviations, list) and not all(isinstance(item, str) for item in deviations):
        problems.append(f"{path}: deviations holds something that is not a text")
    if problems:
        raise ConfigurationError(problems)
    return PageFacts(**(values | {"deviations": tuple(values["deviations"])}))


def format_facts(facts: PageFacts) -> str:
    """The ``page.toml`` that ``read_facts`` reads back, for a page without a recipe.

    Half a surrogate pair, which TOML cannot hold, becomes U+FFFD.
    """
    lines = [
        f"title = {_quote(facts.title)}",
        f"url = {_quote(facts.url)}",
        f"recorded = {facts.recorded.isoformat()}",
        f"source = {_quote(facts.source)}",
        f"licence = {_quote(facts.licence)}",
        f"bodies = {_quote(facts.bodies)}",
    ]
    if facts.pinned:
        lines.append("pinned = true")
    if facts.deviations:
        deviations = "".join(f"    {_quote(text)},\n" for text in facts.deviations)
        lines.append(f"deviations = [\n{deviations}]")
    else:
        lines.append("deviations = []")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f'"{_ESCAPED.sub(_escape, whole)}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
