"""Command-line options that change an experiment: ``--set`` a knob, ``--only`` some conditions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.knobs import LANED, MULTIPLES, RELATIVE, SWEPT, FileKnob, paths
from testbed.experiment.label import axes_of, knob_of, knob_text
from testbed.experiment.settings import find_path, read_settings
from testbed.experiment.toml_lines import parse_toml
from testbed.model import Experiment, Spec
from testbed.model.settings import shorten

KeyPath = tuple[str, ...]
_RIVALS: dict[KeyPath, tuple[KeyPath, ...]] = {
    **{
        (*table, name): tuple((*other, rival) for other in (RELATIVE[multiple].table, ("sweep",)))
        for multiple, relative in MULTIPLES.items()
        for name, rival in permutations((multiple, relative.makes))
        for table in (RELATIVE[multiple].table, ("sweep",))
    },
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
    words = tuple(key.split("."))
    if words[0] == "sweep":
        words = words[1:]
    if words == ("link",):  # short for it, as in a file
        words = ("link", "profile")
    for path, knob in known.items():
        if words in (path, path[-1:]):
            return path, knob
    setting = find_path(words)
    if setting is not None:
        return setting, SWEPT[setting[1]]
    names = [path[-1] for path in known]
    hint = did_you_mean(words[-1] if words else key, names) or _hint_of_sysctl(key)
    raise ConfigurationError([f"no knob is named {key!r}{hint}; knobs: {', '.join(names)}"])


def _hint_of_sysctl(key: str) -> str:
    """Return what to write where ``key`` looks like the name of a sysctl alone."""
    return f" (sysctls are tcp.sysctl.{key})" if key.startswith(("tcp_", "net.")) else ""


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
        if len(path) > 2:  # a setting, in a family of which it may be in either of two tables
            axis = ("sweep", *path[1:])
            rivals = tuple(
                each.path
                for each in read_settings(document)
                if (each.family, each.name) == path[1:]
            )
        else:
            axis, rivals = ("sweep", path[-1]), ()
        swept = isinstance(value, list) and axis[1] in SWEPT | RELATIVE | LANED
        target = axis if swept else path
        other = path if target[0] == "sweep" else axis
        for rival in {other, *rivals, *_RIVALS.get(target, ())} - {target}:
            _remove(document, rival)
            origins.pop(rival, None)
        _write(document, target, value)
        origins[target] = override.option
    return origins, problems


def _remove(document: dict[str, Any], path: KeyPath) -> None:
    table: Any = document
    for part in path[:-1]:
        table = table.get(part) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table.pop(path[-1], None)


def _write(document: dict[str, Any], path: KeyPath, value: Any) -> None:
    table: Any = document
    for part in path[:-1]:
        table = table.setdefault(part, {}) if isinstance(table, dict) else None
    if isinstance(table, dict):  # otherwise validation will say that it is no table
        table[path[-1]] = value


def select(experiment: Experiment, only: str) -> Experiment:
    """Keep the conditions that match ``only``: the same key twice means either value.

    Raises:
        ConfigurationError: an unknown key, or nothing matches (with the values there are).
    """
    wanted, problems = _parse(only, "--only", experiment)
    for clause, key, value in wanted:
        there = dict.fromkeys(knob_text(knob_of(c, key)) for c in experiment.conditions)
        if value not in there:
            problems.append(f"--only {clause}: no condition has this value; "
                            f"{key} is one of {', '.join(there)}")  # fmt: skip
    if problems:
        raise ConfigurationError(problems)
    kept = tuple(c for c in experiment.conditions if _matches(c, wanted))
    if not kept:
        raise ConfigurationError([f"--only {only}: no condition has all of these values at once"])
    return replace(experiment, conditions=kept)


def leave_out(experiment: Experiment, place: str) -> Experiment:
    """Take the conditions away that match one of the texts of ``experiment.leave_out``.

    A text that matches none is no error: another sweep of the same file may not have its values.

    Raises:
        ConfigurationError: an unknown key, by its ``place``, or no condition is left.
    """
    kept, problems = experiment.conditions, []
    for text in experiment.leave_out:
        wanted, wrong = _parse(text, place, experiment)
        problems += wrong
        kept = tuple(c for c in kept if not _matches(c, wanted))
    if not problems and not kept:
        problems = [f"{place}: no condition is left; take a text away"]
    if problems:
        raise ConfigurationError(problems)
    return replace(experiment, conditions=kept)


_Wanted = tuple[str, str, str]
"""A clause as it was typed, its knob, and the value as people type it."""


def _matches(condition: Spec, wanted: Sequence[_Wanted]) -> bool:
    values: dict[str, set[str]] = {}
    for _, key, value in wanted:
        values.setdefault(key, set()).add(value)
    return all(knob_text(knob_of(condition, key)) in either for key, either in values.items())


def _parse(clauses: str, place: str, experiment: Experiment) -> tuple[list[_Wanted], list[str]]:
    """Return what ``clauses`` ask for, and a sentence that begins with ``place`` for each error."""
    wanted: list[_Wanted] = []
    problems: list[str] = []
    named = axes_of(experiment.conditions)
    for clause in clauses.split(","):
        dotted, equals, text = (part.strip() for part in clause.partition("="))
        setting = _find_axis(dotted, named)
        key = setting or dotted.rpartition(".")[2]
        key = "profile" if key == "link" else key  # short for it, as in a file
        if not equals or not key:
            problems.append(f"{place} {clause}: write it as key=value, such as page=amazon")
        elif key in RELATIVE and (whole := getattr(experiment, MULTIPLES[key].of)) is not None:
            multiple = parse_value(text, RELATIVE[key])
            if isinstance(multiple, int | float):
                product = MULTIPLES[key].product(multiple, whole)
                wanted.append((clause, MULTIPLES[key].makes, str(product)))
            else:
                problems.append(f"{place} {clause}: not {RELATIVE[key].allowed}")
        elif setting:
            knob = SWEPT[setting.partition(".")[0]]
            wanted.append((clause, setting, knob_text(parse_value(text, knob))))
        elif key not in SWEPT:
            hint = did_you_mean(key, SWEPT)
            problems.append(f"{place} {clause}: no knob is named {dotted!r}{hint}; "
                            f"knobs: {', '.join(SWEPT)}")  # fmt: skip
        else:
            wanted.append((clause, key, knob_text(parse_value(text, SWEPT[key]))))
    return wanted, problems


def _find_axis(dotted: str, named: Sequence[str]) -> str | None:
    """Return which axis ``dotted`` means, with its family before it or without, if a setting's."""
    path = find_path(tuple(dotted.split(".")))
    axis = ".".join(path[1:]) if path else shorten(dotted)
    settings = (name for name in named if "." in name)
    return next((name for name in settings if axis in (name, name.partition(".")[2])), None)
