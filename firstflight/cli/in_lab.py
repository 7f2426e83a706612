"""Commands in the lab: the experiment that runs one, in one condition and once."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

from firstflight.cli.choice import Choice
from testbed.base.errors import ConfigurationError
from testbed.experiment.config import Catalogue
from testbed.experiment.label import knob_of, label_axes, varying
from testbed.experiment.options import Override
from testbed.kinds.command.description import KIND
from testbed.model import Experiment
from testbed.model.command import CLIENT


def plan_command(
    choice: Choice, catalogue: Catalogue, command: str, typed: str, **more: str
) -> Experiment:
    """Return the experiment that runs ``command`` once, in the one condition that is chosen.

    ``typed`` is how the user gave the command, for messages; ``more`` are other knobs by name.

    Raises:
        ConfigurationError: the choice is of several conditions, of none, or has no page.
    """
    fixed = [
        Override(knob, json.dumps(value, ensure_ascii=False), option)
        for knob, value, option in (
            ("kind", KIND.name, "a command"),
            ("client", CLIENT, "a command"),
            ("command", command, typed),
            *((knob, value, f"--{knob} {value}") for knob, value in more.items()),
        )
    ]
    try:
        experiment = choice.load(catalogue, fixed)
    except ConfigurationError:
        _require_page(choice, catalogue)
        raise
    if len(experiment.conditions) > 1:
        names = varying(experiment.conditions)
        shown = [
            ",".join(label_axes({name: knob_of(each, name)}) for name in names)
            for each in experiment.conditions
        ]
        raise ConfigurationError(
            [f"a command runs in one lab, and this is {len(shown)} conditions; choose one, such as "
             f"--only {shlex.quote(shown[0])}"]
        )  # fmt: skip
    return replace(experiment, name=f"lab-{experiment.name}", repetitions=1, until_ci_pct=None,
                   warmup_blocks=0, kernel_versions=(), roots=(), reference=None)  # fmt: skip


def _require_page(choice: Choice, catalogue: Catalogue) -> None:
    """Say of an experiment that is right, but not of page loads, that it has no such lab.

    Raises:
        ConfigurationError: it is such a one.
    """
    try:
        experiment = choice.load(catalogue)
    except ConfigurationError:
        return  # it is wrong in itself
    if not experiment.pages:
        raise ConfigurationError(
            [f'{choice.config}: kind = "{experiment.kind}" has no page: a command runs in the lab '
             "of page loads, such as that of configs/quick.toml"]
        )  # fmt: skip


def read_text(path: Path) -> str:
    """Return what a command wrote, lines ending in one way; nothing where it did not begin."""
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""
