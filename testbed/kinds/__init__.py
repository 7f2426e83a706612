"""Kinds of trial, each a folder with its description, which all others ask.

A folder has the kind's ``description``, its types (``spec``, ``measurement``), what performs a
trial where its kernel runs (``performance``) and what judges it on the host (``judgement``).
A wing provides such a description to the point ``kinds``.  Modules beside the folders are what
kinds share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from testbed.base.wings import provided
from testbed.kinds.kind import Kind
from testbed.model import Experiment, Trial, kind_of, stored_kind
from testbed.model.knob import Declared, declared, read_spec

DESCRIPTIONS = (
    "testbed.kinds.page_load.description",
    *(each.target for each in provided("kinds")),
    "testbed.kinds.command.description",
)
"""The registry: the modules that describe kinds, one line for each, and those of wings."""
KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (import_module(name).KIND for name in DESCRIPTIONS)
}
"""Every kind of trial, by its name."""


def find_kind(name: object) -> Kind | None:
    """Return the kind of this name; ``None``: there is none, whatever was given for a name."""
    return KINDS.get(name) if isinstance(name, str) else None


def knobs_of(kind: Kind) -> tuple[Declared, ...]:
    """Return the knobs of a kind, those of its files alone last."""
    relative = () if kind.relative is None else declared(kind.relative.spec)
    return (*declared(kind.spec), *relative)


def commands_of(experiment: Experiment) -> tuple[str, ...]:
    """Return the commands of a user's own that the trials of ``experiment`` run, each once."""
    return tuple(dict.fromkeys(_commands(experiment)))


def read_trial(plain: Mapping[str, Any]) -> Trial:
    """Return the inverse of ``dataclasses.asdict`` of a trial."""
    condition = plain["condition"]
    spec = KINDS[stored_kind(condition)].spec
    return Trial(**{**plain, "condition": read_spec(spec, condition)})


def _commands(experiment: Experiment) -> Iterator[str]:
    for spec in experiment.conditions:
        yield from filter(None, KINDS[kind_of(spec)].commands(spec))
