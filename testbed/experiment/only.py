"""``--only 'page=amazon,rtt_ms=100'``: the conditions of an experiment that are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from testbed.base.errors import ConfigurationError
from testbed.base.suggest import did_you_mean
from testbed.experiment.knobs import SWEPT
from testbed.experiment.override import parse_value
from testbed.experiment.problems import toml_text
from testbed.model import Condition, Experiment


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


def knob_of(condition: Condition, name: str) -> Any:
    """The value of knob ``name`` in ``condition``, as an experiment file would give it."""
    part: Any = condition
    for table in SWEPT[name].table:
        part = getattr(part, table)
    value = getattr(part, name)
    return SWEPT[name].declared.knob.absent if value is None else value


def knob_text(value: Any) -> str:
    """``value`` as people type it: ``20``, ``false``, ``amazon``; 20 and 20.0 are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else toml_text(value)


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
