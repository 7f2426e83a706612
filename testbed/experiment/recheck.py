"""Check of an experiment that comes from elsewhere as data: every knob, as in an experiment file.

A manifest of our own was checked when its file was read; a stranger's may say anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from testbed.experiment.config import Catalogue, describe_no_version
from testbed.experiment.knobs import FIXED, KERNEL, SWEPT, FileKnob
from testbed.kinds import KINDS, commands_of
from testbed.kinds.experiment_file import toml_text
from testbed.model import Experiment, kind_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_NAMED = 20


def check_experiment(experiment: Experiment, catalogue: Catalogue) -> list[str]:
    """Return every problem that running ``experiment`` would have here; none: it can be run."""
    problems: dict[str, None] = dict.fromkeys(_whole(experiment, catalogue))
    for spec in experiment.conditions:
        problems |= dict.fromkeys(_values(spec, catalogue))
    sentences = list(problems)
    more = len(sentences) - _MAX_NAMED
    return sentences if more <= 0 else [*sentences[:_MAX_NAMED], f"and {more} more like these"]


def _whole(experiment: Experiment, catalogue: Catalogue) -> Iterator[str]:
    if not _NAME.fullmatch(experiment.name):
        yield f"{toml_text(experiment.name)} cannot name an experiment"
    if not experiment.conditions:
        yield "it has no conditions"
    if any(kind_of(spec) != experiment.kind for spec in experiment.conditions):
        yield f"some of its conditions are of another kind than {experiment.kind}"
    if experiment.command_folder is not None or commands_of(experiment):
        yield (
            "it runs a command of somebody's own, which no pack brings along and nothing here can "
            "judge: read it, write it into an experiment file of yours, and run that"
        )
    if experiment.kernel_versions or experiment.roots:
        yield "it is of several kernels or roots, which a run splits into results of one each"
    for name, knob in FIXED.items():
        yield from _wrong(name, knob, getattr(experiment, name), catalogue)
    versions = catalogue.kernels.get(experiment.kernel, ())
    wrong = list(_wrong("kernel.name", KERNEL["name"], experiment.kernel, catalogue))
    yield from wrong
    if not wrong and experiment.kernel_version not in versions:
        yield describe_no_version(experiment.kernel, experiment.kernel_version, versions)


def _values(spec: Any, catalogue: Catalogue) -> Iterator[str]:
    """Yield the problems of a condition, and of the specs in it."""
    libraries = {kind.name for kind in KINDS.values() if kind.library}
    for each in fields(spec):
        value = getattr(spec, each.name)
        if is_dataclass(value):
            yield from _values(value, catalogue)
        elif each.name in libraries:  # its text is in the condition, so no list has to know it
            wrong = not _NAME.fullmatch(value)
            yield from (f"{each.name}: no name: {toml_text(value)}",) if wrong else ()
        elif each.name in SWEPT:
            yield from _wrong(each.name, SWEPT[each.name], value, catalogue)


def _wrong(name: str, knob: FileKnob, value: Any, catalogue: Catalogue) -> Iterator[str]:
    if value == knob.declared.default:  # also where it is the absence of a value
        return
    plain = list(value) if isinstance(value, tuple) else value
    if plain is None and knob.declared.knob.absent:
        plain = knob.declared.knob.absent
    try:
        TypeAdapter(knob.kind).validate_python(plain, context=catalogue.names())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        listed = first["type"] in ("not_listed", "settings")
        problem = first["msg"] if listed else f"{toml_text(value)} is not {knob.allowed}"
        yield f"{name}: {problem}"
