"""Command-line options that change an experiment: ``--set`` a knob, ``--only`` some conditions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.knobs import SWEPT, FileKnob, paths
from testbed.experiment.label import knob_of, knob_text
from testbed.experiment.toml_lines import parse_toml
from testbed.model import Experiment

KeyPath = tuple[str, ...]
_RIVALS: dict[KeyPath, tuple[KeyPath, ...]] = {
    ("kernel", "version"): (("kernel", "versions"),),
    ("kernel", "versions"): (("kernel", "version"),),
}
"""What a knob takes the place of, besides itself."""


@dataclass(frozen=True, slots=True)
class Override:
    """A knob by its bare or dotted name, its value as typed, and the option it came from."""

    key: str
    value: str
    option: str


def parse_override(text: str) -> Override:
    """Split ``key=value``.

    Raises:
        ConfigurationError: there is no key or no equals sign.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError([f"--set {text}: write it as key=value, such as rtt_ms=100"])
    return Override(key.strip(), value.strip(), f"--set {text}")


def parse_value(text: str, knob: FileKnob) -> Any:
    """Return the TOML value that ``text`` is; plain words are text, quotes or not."""
    try:
        value = parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return text if knob.text and not isinstance(value, str | list) else value


def find_knob(key: str) -> tuple[KeyPath, FileKnob]:
    """Return the path in the file and the knob that a bare or dotted ``key`` names.

    Raises:
        ConfigurationError: no knob has that name.
    """
    known = paths()
    asked = tuple(key.split("."))
    if asked[0] == "sweep":
        asked = asked[1:]
    for path, knob in known.items():
        if asked in (path, path[-1:]):
            return path, knob
    names = [path[-1] for path in known]
    hint = did_you_mean(asked[-1] if asked else key, names)
    raise ConfigurationError([f"no knob is named {key!r}{hint}; knobs: {', '.join(names)}"])


def apply_overrides(
    document: dict[str, Any], overrides: Iterable[Override]
) -> tuple[dict[KeyPath, str], list[str]]:
    """Write ``overrides`` into ``document``; return where each value came from, and problems.

    A list becomes a sweep axis, a single value takes the axis away; one version of the kernel
    takes the place of several, and the reverse.
    """
    origins: dict[KeyPath, str] = {}
    problems: list[str] = []
    for override in overrides:
        try:
            path, knob = find_knob(override.key)
        except ConfigurationError as error:
            problems += [f"{override.option}: {problem}" for problem in error.problems]
            continue
        value = parse_value(override.value, knob)
        target = ("sweep", path[-1]) if isinstance(value, list) and path[-1] in SWEPT else path
        other = path if target[0] == "sweep" else ("sweep", path[-1])
        for rival in (other, *_RIVALS.get(target, ())):
            _remove(document, rival)
            origins.pop(rival, None)
        _write(document, target, value)
        origins[target] = override.option
    return origins, problems


def _remove(document: dict[str, Any], path: KeyPath) -> None:
    table = document if len(path) == 1 else document.get(path[0])
    if isinstance(table, dict):
        table.pop(path[-1], None)


def _write(document: dict[str, Any], path: KeyPath, value: Any) -> None:
    table = document if len(path) == 1 else document.setdefault(path[0], {})
    if isinstance(table, dict):  # otherwise validation will say that it is no table
        table[path[-1]] = value


def select(experiment: Experiment, only: str) -> Experiment:
    """Keep the conditions that match ``only``: the same key twice means either value.

    Raises:
        ConfigurationError: an unknown key, or nothing matches (with the values there are).
    """
    wanted, problems = _parse(only, experiment)
    if problems:
        raise ConfigurationError(problems)
    kept = tuple(
        condition
        for condition in experiment.conditions
        if all(knob_text(knob_of(condition, key)) in values for key, values in wanted.items())
    )
    if not kept:
        raise ConfigurationError([f"--only {only}: no condition has all of these values at once"])
    return replace(experiment, conditions=kept)


def _parse(only: str, experiment: Experiment) -> tuple[dict[str, set[str]], list[str]]:
    wanted: dict[str, set[str]] = {}
    problems: list[str] = []
    for clause in only.split(","):
        dotted, equals, text = (part.strip() for part in clause.partition("="))
        key = dotted.rpartition(".")[2]
        if not equals or not key:
            problems.append(f"--only {clause}: write it as key=value, such as page=amazon")
        elif key not in SWEPT:
            hint = did_you_mean(key, SWEPT)
            problems.append(f"--only {clause}: no knob is named {dotted!r}{hint}; "
                            f"knobs: {', '.join(SWEPT)}")  # fmt: skip
        else:
            value = knob_text(parse_value(text, SWEPT[key]))
            there = dict.fromkeys(knob_text(knob_of(c, key)) for c in experiment.conditions)
            if value not in there:
                problems.append(f"--only {clause}: no condition has this value; "
                                f"{key} is one of {', '.join(there)}")  # fmt: skip
            wanted.setdefault(key, set()).add(value)
    return wanted, problems
