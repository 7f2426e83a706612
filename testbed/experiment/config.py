"""Experiment files in TOML: from one to an Experiment, or all its errors, each with its place."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.algorithms import find_unknown
from testbed.experiment.asked_link import AskedLink
from testbed.experiment.knobs import FIXED, LANED, OF_KIND, SWEPT, kinds_with
from testbed.experiment.options import Override, apply_overrides, leave_out
from testbed.experiment.profiles import (
    Profile,
    find_contradictions,
    hint_of_table,
    read_named,
    write_out,
)
from testbed.experiment.settings import (
    check_settings,
    read_settings,
    with_settings,
    without_settings,
)
from testbed.experiment.toml_lines import find_lines, locate, parse_toml
from testbed.experiment.validation import describe, validate
from testbed.kinds import KINDS, find_kind
from testbed.kinds.exclusions import find_exclusions
from testbed.kinds.experiment_file import ExperimentFile, value_at
from testbed.kinds.kind import Kind
from testbed.model import (
    DEFAULT_KIND,
    DEFAULT_ROOT,
    MAX_REPETITIONS,
    Experiment,
    Spec,
    in_real_time,
)
from testbed.model.knob import build
from testbed.model.settings import FAMILIES
from testbed.traces.catalogue import is_own

LARGEST_FILE = 1 << 17
MOST_TRIALS = 100_000
KeyPath = tuple[str, ...]
_TIMEOUT_S = next(each.default for each in fields(Experiment) if each.name == "timeout_s")
_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that exist here: pages, clients, references, and each kernel's versions.

    Without ``references`` nobody knows any here, and an experiment may name whichever it likes.
    The first version of a kernel is its default.  ``libraries`` are, of the kinds of trial whose
    conditions are files, the texts of those files by name.
    ``regular`` are the versions of kernels that run where all are asked for; of a kernel that has
    none among them all do.  ``algorithms`` are the congestion controls of pinned kernels by their
    versions.  ``honours`` is what each client can do that not every one can.
    """

    pages: frozenset[str]
    clients: frozenset[str]
    references: frozenset[str] | None
    kernels: Mapping[str, tuple[str, ...]]
    libraries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    regular: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset({DEFAULT_ROOT})
    algorithms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    honours: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def names(self) -> dict[str, frozenset[str]]:
        """Return the valid names by what they name."""
        return {
            "page": self.pages,
            "client": self.clients,
            **({} if self.references is None else {"reference": self.references}),
            "root": self.roots,
            "kernel": frozenset(self.kernels),
            **{kind: frozenset(texts) for kind, texts in self.libraries.items()},
        }


@dataclass(frozen=True, slots=True)
class _Source:
    """An experiment file as read, with what the command line changed, and where each key is."""

    path: Path
    document: dict[str, Any]
    lines: dict[KeyPath, int]
    origins: dict[KeyPath, str] = field(default_factory=dict)

    def where(self, key: KeyPath) -> str:
        for length in range(len(key), 0, -1):
            if key[:length] in self.origins:
                return self.origins[key[:length]]
        line = locate(self.lines, key)
        return f"{self.path}:{line}" if line else str(self.path)


def load_experiment(
    path: Path, catalogue: Catalogue, overrides: Iterable[Override] = ()
) -> Experiment:
    """Read the experiment in ``path``, with ``overrides`` applied to it.

    Raises:
        ConfigurationError: with every problem that the file and the overrides have.
    """
    document, lines = _read(path)
    write_out(document, lines)
    origins, problems = apply_overrides(document, overrides)
    source = _Source(path, document, lines, origins)
    profiles, unnamed = read_named(document, origins, source.where, path.parent)
    problems += unnamed
    settings = list(read_settings(document))
    wrong = list(check_settings(document, source.where))
    plain = without_settings(document)
    values, errors = validate(plain, catalogue.names())
    problems += describe(errors, plain, source.where)
    problems += wrong
    problems += _missing(source)
    if not errors and not wrong:
        values = with_settings(values, document, settings)
    if not errors:
        values, relative = _replace_relative(values, source.where)
        problems += relative
    if not errors and not relative:
        problems += [
            *_of_another_kind(source, values),
            *_fixed_and_swept(source, values),
            *_kernel_versions(source, values, catalogue),
            *_link(source, values, catalogue, profiles),
            *_stopping(source, values),
            *_too_many(source, values),
            *_folder(source, values),
            *_of_its_own(source, values, catalogue),
            *([] if unnamed else _excluded(source, values, catalogue, profiles)),
        ]
    if problems:
        raise ConfigurationError(problems)
    if "command_folder" in values:
        values["command_folder"] = str(_folder_path(source, values["command_folder"]))
    experiment = _experiment(path.stem, values, catalogue, profiles)
    if any(map(is_own, experiment.traces)):
        experiment = replace(experiment, trace_folder=str(path.parent.resolve()))
    unknown = [f"{path}: {each}" for each in find_unknown(experiment, catalogue.algorithms)]
    if unknown:
        raise ConfigurationError(unknown)
    return leave_out(experiment, f"{source.where(('leave_out',))}: leave_out")


def _read(path: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    if not _NAME.fullmatch(path.stem):
        raise ConfigurationError(
            [f"{path}: {path.stem!r} names the results folder; use letters, digits, '.', '_', '-'"]
        )
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.toml")])
        raise ConfigurationError([f"cannot read {path}: {error.strerror}{near}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError([f"{path}: not UTF-8 text: {error}"]) from None
    if len(text) > LARGEST_FILE:
        raise ConfigurationError(
            [f"{path}: more than {LARGEST_FILE} characters; no experiment file is that long"]
        )
    try:
        return parse_toml(text), find_lines(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _SYNTAX_PLACE.search(message)
        last = text.rstrip("\n").count("\n") + 1
        line = place.group(1) if place and place.group(1) else last
        problem = f"{path}:{line}: not TOML: {message[: place.start()] if place else message}"
        raise ConfigurationError([problem + hint_of_table(text)]) from None


def _replace_relative(
    values: dict[str, Any], where: Callable[[KeyPath], str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values with other knobs in the place of relative ones, and problems."""
    problems: list[str] = []
    for kind in KINDS.values():
        if kind.relative is not None:
            values, found = kind.rules().replace_relative(values, where)
            problems += found
    return values, problems


def _missing(source: _Source) -> Iterator[str]:
    sweep = source.document.get("sweep")
    kind = find_kind(source.document.get("kind", DEFAULT_KIND))
    for name in () if kind is None else kind.needed:
        if name not in source.document and not (isinstance(sweep, dict) and name in sweep):
            yield (
                f"{source.path}: {name}: missing; set it at the top of the file "
                f"({name} = ...) or sweep it ([sweep] {name} = [...])"
            )


def _of_another_kind(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    kind = _kind(values).name
    own = OF_KIND[kind]
    for name, knob in SWEPT.items():
        swept = any(name in (axis, axis.partition(".")[0]) for axis in values.get("sweep", {}))
        if name in own or not (swept or value_at(values, knob.path) is not None):
            continue
        key = ("sweep", name) if swept else knob.path
        yield (
            f"{source.where(key)}: {'.'.join(key)}: trials of the kind {kind} have no such knob; "
            f"leave it out, or set kind = {kinds_with(name)}"
        )


def _of_its_own(source: _Source, values: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    """What the rules of its kind of trial have against the file."""
    kind = _kind(values)
    if kind.has_rules:
        yield from kind.rules().find_problems(_file(source, values, catalogue))


def _excluded(
    source: _Source,
    values: Mapping[str, Any],
    catalogue: Catalogue,
    profiles: Mapping[str, Profile],
) -> Iterator[str]:
    """What the conditions that are not left out have and no trial can have together."""
    kind = _kind(values)
    if kind.library or any(_too_many(source, values)):
        return
    axes = values.get("sweep", {})
    named = {name: values.get(name, "?") for name in kind.needed if name not in axes}
    experiment = _experiment(source.path.stem, {**values, **named}, catalogue, profiles)
    with suppress(ConfigurationError):  # which is told when all else is right
        experiment = leave_out(experiment, "")
    kernel = _kernel(values, catalogue)[0]
    yield from find_exclusions(experiment.conditions, kernel, _file(source, values, catalogue))


def _file(source: _Source, values: Mapping[str, Any], catalogue: Catalogue) -> ExperimentFile:
    """Return the file as the rules of its kind see it."""
    return ExperimentFile(
        values,
        source.where,
        in_real_time=in_real_time(_kernel(values, catalogue)[0]),
        has_folder="command_folder" in values,
        library=catalogue.libraries.get(_kind(values).name, {}),
        honours=catalogue.honours,
    )


def _folder(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    folder = values.get("command_folder")
    if folder is not None and not _folder_path(source, folder).is_dir():
        yield (
            f"{source.where(('command_folder',))}: command_folder: no folder "
            f"{_folder_path(source, folder)}"
        )


def _folder_path(source: _Source, folder: str) -> Path:
    """Return the folder: beside the experiment file, or where the command line was typed."""
    typed = ("command_folder",) in source.origins
    return ((Path() if typed else source.path.parent) / folder).resolve()


def _kind(values: Mapping[str, Any]) -> Kind:
    return KINDS[values.get("kind", DEFAULT_KIND)]


def _fixed_and_swept(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    for name in values.get("sweep", {}):
        knob = (SWEPT | LANED).get(name)
        if knob is None:  # a setting, which was checked where it was read
            continue
        path = knob.path
        if value_at(values, path) is not None:
            yield (
                f"{source.where(path)}: {'.'.join(path)}: also swept "
                f"({source.where(('sweep', name))}); keep one of the two"
            )


def _kernel_versions(
    source: _Source, values: Mapping[str, Any], catalogue: Catalogue
) -> Iterator[str]:
    table = values.get("kernel", {})
    several = "versions" in table
    if several and "version" in table:
        yield (
            f"{source.where(('kernel', 'version'))}: kernel.version: there are kernel.versions "
            f"as well ({source.where(('kernel', 'versions'))}); keep one of the two"
        )
    name, versions = _kernel(values, catalogue)
    key = ("kernel", "versions" if several else "version")
    place = f"{source.where(key)}: {'.'.join(key)}"
    if several and in_real_time(name):
        yield (
            f"{place}: the {name} kernel is the one that runs and has no other versions; "
            "leave them out, or run one kernel with --kernel-version"
        )
        return
    valid = catalogue.kernels.get(name, ())
    for version in versions:
        if version not in valid:
            yield f"{place}: {describe_no_version(name, version, valid)}"


def describe_no_version(kernel: str, version: str, valid: Sequence[str]) -> str:
    """Return a sentence on a version that ``kernel`` does not have, with those that it has."""
    near = did_you_mean(version, valid)
    allowed = ", ".join(valid) or "none"
    return f"the {kernel} kernel has no version {version!r}{near}; allowed: {allowed}"


def _link(
    source: _Source,
    values: Mapping[str, Any],
    catalogue: Catalogue,
    profiles: Mapping[str, Profile],
) -> Iterator[str]:
    yield from find_contradictions(values, profiles, source.where)
    link = AskedLink(values, profiles, source.where)
    yield from link.find_small_buffers()
    if math.prod(map(len, link.axes.values())) <= MOST_TRIALS:  # more is refused
        yield from link.find_impossible(values.get("timeout_s", _TIMEOUT_S))
    yield from link.find_wrong_traces(source.path.parent)


def _stopping(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    if "max_repetitions" in values and "until_ci_pct" not in values:
        yield (
            f"{source.where(('max_repetitions',))}: max_repetitions: bounds until_ci_pct "
            "(--until-ci), which is not set; for a fixed number use repetitions (-n)"
        )
    least, most = values.get("repetitions", 1), values.get("max_repetitions", MAX_REPETITIONS)
    if "until_ci_pct" in values and least > most:
        yield (
            f"{source.where(('repetitions',))}: repetitions: with until_ci_pct it is the least "
            f"number, and {least} is above max_repetitions, {most}; lower it, or raise the other "
            "(--max-n)"
        )


def _too_many(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    axes = values.get("sweep", {})
    conditions = math.prod(map(len, axes.values()))
    trials = conditions * values.get("repetitions", 1)
    if trials > MOST_TRIALS:
        yield (
            f"{source.where(('sweep',) if axes else ('repetitions',))}: {conditions} conditions, "
            f"{trials} trials; allowed: {MOST_TRIALS}; sweep or repeat less in one run"
        )


def _experiment(
    name: str, values: dict[str, Any], catalogue: Catalogue, profiles: Mapping[str, Profile]
) -> Experiment:
    kernel, versions = _kernel(values, catalogue)
    axes: dict[str, list[Any]] = dict(values.get("sweep", {}))
    roots = tuple(axes.pop("root", ()))
    # Each once: a sweep of commands leaves one of any other client.
    conditions = tuple(dict.fromkeys(
        _condition(values, dict(zip(axes, point, strict=True)), catalogue, profiles)
        for point in itertools.product(*axes.values())
    ))  # fmt: skip
    own: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in values.items()
        if key in FIXED.keys() - {"title"}
    }
    return Experiment(
        name=name,
        title=values.get("title", name),
        conditions=conditions,
        kernel=kernel,
        kernel_version=versions[0],
        kernel_versions=versions if len(versions) > 1 else (),
        roots=roots if len(roots) > 1 else (),
        **own | ({"root": roots[0]} if roots else {}),
    )


def _condition(
    values: Mapping[str, Any],
    point: Mapping[str, Any],
    catalogue: Catalogue,
    profiles: Mapping[str, Profile],
) -> Spec:
    kind = _kind(values)
    chosen = {
        name: point.get(name, value_at(values, (*SWEPT[name].table, name)))
        for name in OF_KIND[kind.name]
    }
    if chosen.get("profile"):
        chosen |= profiles[chosen["profile"]].values
    for family in FAMILIES:
        axes = {name.partition("."): value for name, value in point.items()}
        own = {name: value for (axis, _, name), value in axes.items() if axis == family}
        chosen[family] = {**(chosen.get(family) or {}), **own} or None
    if kind.library:
        chosen["text"] = catalogue.libraries[kind.name][chosen[kind.name]]
    condition: Spec = build(kind.spec, {
        name: None if name in SWEPT and value == (SWEPT[name].declared.knob.absent or None)
        else value
        for name, value in kind.complete(chosen).items()
        if value is not None
    })  # fmt: skip
    return condition


def _kernel(values: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, tuple[str, ...]]:
    """Return the kernel's name and its version, or versions, to run on."""
    table = values.get("kernel", {})
    name = table.get("name", "virtual")
    if "versions" in table:
        return name, tuple(table["versions"])
    versions = catalogue.kernels.get(name, ())
    return name, (table.get("version", versions[0] if versions else ""),)
