"""Experiment files in TOML: from one to an Experiment, or all its errors, each with its place."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.commands import find_problems
from testbed.experiment.knobs import FIXED, OF_KIND, SWEPT
from testbed.experiment.options import Override, apply_overrides, leave_out
from testbed.experiment.saturation import set_absolute_rates
from testbed.experiment.settings import (
    check_settings,
    read_settings,
    with_settings,
    without_settings,
)
from testbed.experiment.toml_lines import find_lines, locate, parse_toml
from testbed.experiment.validation import describe, toml_text, validate
from testbed.model import (
    KINDS,
    MAX_REPETITIONS,
    ArrivalSpec,
    Experiment,
    Kind,
    LinkSpec,
    Scenario,
    ServerSpec,
    Spec,
    in_real_time,
)
from testbed.model.command import CLIENT, LAB_PLACEHOLDERS, LOAD_PLACEHOLDERS
from testbed.model.knob import build
from testbed.model.settings import FAMILIES
from testbed.scenario.promise import PromiseError, read_promise

LARGEST_FILE = 1 << 17
MOST_TRIALS = 100_000
KeyPath = tuple[str, ...]
_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_LOOPS = {"rate_per_s": "open", "spacing": "open", "clients": "closed"}
"""The loop that a knob of arrivals belongs to."""
_NEEDED = {
    "page_load": ("page", "client"),
    "scenario": ("scenario",),
    "command": ("page", "command"),
}
"""The knobs without a default, by the kind of trial."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The names that exist here: pages, clients, references, and each kernel's versions.

    The first version of a kernel is its default.  ``scenarios`` are the texts of scenarios by name.
    ``regular`` are the versions of kernels that run where all are asked for; of a kernel that has
    none among them all do.
    """

    pages: frozenset[str]
    clients: frozenset[str]
    references: frozenset[str]
    kernels: Mapping[str, tuple[str, ...]]
    scenarios: Mapping[str, str] = field(default_factory=dict)
    regular: tuple[str, ...] = ()

    def names(self) -> dict[str, frozenset[str]]:
        """Return the valid names by what they name."""
        return {
            "page": self.pages,
            "client": self.clients,
            "reference": self.references,
            "kernel": frozenset(self.kernels),
            "scenario": frozenset(self.scenarios),
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
    origins, problems = apply_overrides(document, overrides)
    source = _Source(path, document, lines, origins)
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
        values, relative = set_absolute_rates(values, source.where)
        problems += relative
    if not errors and not relative:
        problems += [
            *_of_another_kind(source, values),
            *_of_another_loop(source, values),
            *_queues(source, values),
            *_without_a_price(source, values, catalogue),
            *_fixed_and_swept(source, values),
            *_kernel_versions(source, values, catalogue),
            *_buffer_below_mtu(source, values),
            *_stopping(source, values),
            *_too_many(source, values),
            *_scenarios(source, values, catalogue),
            *_commands(source, values),
        ]
    if problems:
        raise ConfigurationError(problems)
    if "command_folder" in values:
        values["command_folder"] = str(_folder_path(source, values["command_folder"]))
    experiment = _experiment(path.stem, values, catalogue)
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
        found = _SYNTAX_PLACE.search(message)
        last = text.rstrip("\n").count("\n") + 1
        line = found.group(1) if found and found.group(1) else last
        problem = f"{path}:{line}: not TOML: {message[: found.start()] if found else message}"
        raise ConfigurationError([problem]) from None


def _missing(source: _Source) -> Iterator[str]:
    sweep = source.document.get("sweep")
    kind = source.document.get("kind", "page_load")
    for name in _NEEDED.get(kind, ()) if isinstance(kind, str) else ():
        if name not in source.document and not (isinstance(sweep, dict) and name in sweep):
            yield (
                f"{source.path}: {name}: missing; set it at the top of the file "
                f"({name} = ...) or sweep it ([sweep] {name} = [...])"
            )


def _of_another_kind(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    kind = _kind(values)
    own = OF_KIND[kind]
    for name, knob in SWEPT.items():
        swept = any(name in (axis, axis.partition(".")[0]) for axis in values.get("sweep", {}))
        if name in own or not (swept or _at(values, knob.path) is not None):
            continue
        key = ("sweep", name) if swept else knob.path
        others = " or ".join(f'"{other}"' for other, names in OF_KIND.items() if name in names)
        yield (
            f"{source.where(key)}: {'.'.join(key)}: trials of the kind {kind} have no such knob; "
            f"leave it out, or set kind = {others}"
        )


def _of_another_loop(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    swept = values.get("sweep", {})
    loop = _at(values, ("arrivals", "loop")) or ArrivalSpec().loop
    if _kind(values) != "server_load" or "loop" in swept:
        return
    for name, own in _LOOPS.items():
        key = ("sweep", name) if name in swept else ("arrivals", name)
        if own != loop and _at(values, key) is not None:
            yield (
                f'{source.where(key)}: {".".join(key)}: has no meaning where loop = "{loop}"; '
                f'leave it out, or set loop = "{own}"'
            )


def _queues(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    """The kernel has one backlog for both queues: that of handshakes cannot be the shorter one."""
    if _kind(values) != "server_load":
        return
    spec, swept = ServerSpec(), values.get("sweep", {})
    found = {}
    for name in ("syn_backlog", "listen_backlog"):
        fixed = _at(values, ("server", name))
        found[name] = swept.get(name, [getattr(spec, name) if fixed is None else fixed])
    least, most = min(found["syn_backlog"]), max(found["listen_backlog"])
    if least < most:
        asked = "listen_backlog" if _at(values, ("server", "listen_backlog")) else "syn_backlog"
        key = ("sweep", asked) if asked in swept else ("server", asked)
        yield (
            f"{source.where(key)}: {'.'.join(key)}: a SYN backlog of {least} is shorter than a "
            f"listen backlog of {most}, and the kernel has one for both; set syn_backlog to "
            f"{most} or more"
        )


def _without_a_price(
    source: _Source, values: Mapping[str, Any], catalogue: Catalogue
) -> Iterator[str]:
    """In virtual time work is paid for by the program that does it, and nginx cannot."""
    swept, spec = values.get("sweep", {}), ServerSpec()
    programs = swept.get("program", [_at(values, ("server", "program"))])
    price = _at(values, ("server", "price"))
    prices = swept.get("price", [spec.price if price is None else price])
    name, _ = _kernel(values, catalogue)
    if "nginx" in programs and any(prices) and not in_real_time(name):
        key = ("sweep" if "program" in swept else "server", "program")
        yield (
            f"{source.where(key)}: {'.'.join(key)}: nginx cannot pay for its work in virtual time, "
            f'so no load is too much for it there; set kernel.name = "host", or program = '
            f'"{spec.program}", or price = 0 for a server whose work is free'
        )


def _scenarios(source: _Source, values: Mapping[str, Any], catalogue: Catalogue) -> Iterator[str]:
    """What is wrong in the files of the scenarios that are asked for."""
    if _kind(values) != "scenario":
        return
    swept = "scenario" in values.get("sweep", {})
    for name in values["sweep"]["scenario"] if swept else [values.get("scenario", "")]:
        try:
            read_promise(catalogue.scenarios.get(name, ""))
        except PromiseError as error:
            yield from (f"scenario {name}: {problem}" for problem in error.problems)


def _commands(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong in commands: their words, placeholders, programs, and the folder of files."""
    kind, swept = _kind(values), values.get("sweep", {})
    folder = values.get("command_folder")
    if folder is not None and not _folder_path(source, folder).is_dir():
        yield (
            f"{source.where(('command_folder',))}: command_folder: no folder "
            f"{_folder_path(source, folder)}"
        )
    if kind == "page_load":
        clients = swept.get("client", [values.get("client")])
        asked = {"command": LOAD_PLACEHOLDERS} if CLIENT in clients else {}
    else:
        asked = dict.fromkeys(("command", "peer"), LAB_PLACEHOLDERS) if kind == "command" else {}
    for name, placeholders in asked.items():
        key = ("sweep", name) if name in swept else (name,)
        place = f"{source.where(key)}: {'.'.join(key)}"
        commands = swept.get(name, [values.get(name, "")])
        if kind == "page_load" and not any(commands):
            yield f'{place}: the client "{CLIENT}" has none to run; set {name} = "PROGRAM ..."'
        for command in commands:
            for problem in find_problems(command, placeholders, folder is not None):
                yield f"{place}: {toml_text(command)}: {problem}"


def _folder_path(source: _Source, folder: str) -> Path:
    """Return the folder: beside the experiment file, or where the command line was typed."""
    typed = ("command_folder",) in source.origins
    return ((Path() if typed else source.path.parent) / folder).resolve()


def _kind(values: Mapping[str, Any]) -> Kind:
    kind: Kind = values.get("kind", "page_load")
    return kind


def _fixed_and_swept(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    for name in values.get("sweep", {}):
        if name not in SWEPT:  # a setting, which was checked where it was read
            continue
        path = (*SWEPT[name].table, name)
        if _at(values, path) is not None:
            yield (
                f"{source.where(path)}: {'.'.join(path)}: also swept "
                f"({source.where(('sweep', name))}); keep one of the two"
            )


def _kernel_versions(
    source: _Source, values: Mapping[str, Any], catalogue: Catalogue
) -> Iterator[str]:
    asked = values.get("kernel", {})
    several = "versions" in asked
    if several and "version" in asked:
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


def _buffer_below_mtu(source: _Source, values: Mapping[str, Any]) -> Iterator[str]:
    buffers = _values_of("buffer_bytes", values)
    packets = itertools.product(
        _values_of("mtu_bytes", values), _values_of("framing_bytes", values)
    )
    largest = max(mtu + framing for mtu, framing in packets)
    for size in buffers:
        if size < largest:
            swept = "buffer_bytes" in values.get("sweep", {})
            key = ("sweep" if swept else "link", "buffer_bytes")
            yield (
                f"{source.where(key)}: {'.'.join(key)}: a buffer of {size} bytes cannot hold one "
                f"packet of {largest} bytes (mtu_bytes + framing_bytes); allowed: {largest} and up"
            )


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


def _experiment(name: str, values: dict[str, Any], catalogue: Catalogue) -> Experiment:
    kernel, versions = _kernel(values, catalogue)
    axes: dict[str, list[Any]] = values.get("sweep", {})
    # Each once: a sweep of commands leaves one of any other client.
    conditions = tuple(dict.fromkeys(
        _condition(values, dict(zip(axes, point, strict=True)), catalogue)
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
        **own,
    )


def _condition(values: Mapping[str, Any], point: Mapping[str, Any], catalogue: Catalogue) -> Spec:
    kind = _kind(values)
    chosen = {
        name: point.get(name, _at(values, (*SWEPT[name].table, name))) for name in OF_KIND[kind]
    }
    if kind == "scenario":
        name = str(chosen["scenario"])
        return Scenario(name, catalogue.scenarios[name])
    for family in FAMILIES:
        axes = {name.partition("."): value for name, value in point.items()}
        own = {name: value for (axis, _, name), value in axes.items() if axis == family}
        chosen[family] = {**(chosen[family] or {}), **own} or None
    if kind == "command":
        chosen["client"] = CLIENT
    elif kind == "page_load" and chosen["client"] != CLIENT:
        chosen["command"] = None  # another client has nothing of it
    condition: Spec = build(KINDS[kind], {
        name: None if value == (SWEPT[name].declared.knob.absent or None) else value
        for name, value in chosen.items()
        if value is not None
    })  # fmt: skip
    return condition


def _kernel(values: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, tuple[str, ...]]:
    """Return the kernel's name and its version, or versions, to run on."""
    asked = values.get("kernel", {})
    name = asked.get("name", "virtual")
    if "versions" in asked:
        return name, tuple(asked["versions"])
    versions = catalogue.kernels.get(name, ())
    return name, (asked.get("version", versions[0] if versions else ""),)


def _values_of(name: str, values: Mapping[str, Any]) -> list[Any]:
    swept = values.get("sweep", {}).get(name)
    if swept is not None:
        return list(swept)
    fixed = _at(values, ("link", name))
    return [getattr(LinkSpec(), name) if fixed is None else fixed]


def _at(values: Mapping[str, Any], path: KeyPath) -> Any:
    node: Any = values
    for part in path:
        node = node.get(part) if isinstance(node, Mapping) else None
    return node
