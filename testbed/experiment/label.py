"""Names of conditions and trials for people, by the knobs that differ within an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.experiment.knobs import OF_KIND, SWEPT
from testbed.kinds.experiment_file import toml_text
from testbed.model import Spec, Trial, kind_of
from testbed.model.settings import FAMILIES


def varying(conditions: Sequence[Spec]) -> tuple[str, ...]:
    """Return the knobs on which ``conditions`` differ, a page always among them."""
    return tuple(
        name
        for name in axes_of(conditions)
        if name == "page" or len({knob_text(knob_of(c, name)) for c in conditions}) > 1
    )


def axes_of(conditions: Sequence[Spec]) -> tuple[str, ...]:
    """Return the names of all that may differ: knobs, settings as ``sysctl.client.tcp_sack``."""
    if not conditions:
        return ()
    names: list[str] = []
    for name in OF_KIND[kind_of(conditions[0])]:
        tables: list[Any] = (
            [knob_of(condition, name) for condition in conditions] if name in FAMILIES else []
        )
        names += (
            sorted({f"{name}.{setting}" for table in tables for setting in table})
            if tables
            else [name]
        )
    return tuple(names)


def label(trial: Trial, names: Sequence[str], seeds: bool = False) -> str:
    """Return ``page=amazon rtt_ms=20 tfo=false``, with ``seed=3`` when there are several."""
    words = label_condition(trial.condition, names)
    return f"{words} seed={trial.seed}" if seeds else words


def label_condition(condition: Spec, names: Sequence[str]) -> str:
    """Return ``page=amazon rtt_ms=20 tfo=false``: the knobs ``names`` of a condition."""
    return label_axes({name: knob_of(condition, name) for name in names})


def label_axes(axes: Mapping[str, Any]) -> str:
    """Return ``axes``, values by knob, as ``page=amazon rtt_ms=20``."""
    return " ".join(f"{name}={_text(name, value)}" for name, value in axes.items())


def _text(name: str, value: Any) -> str:
    if value is None:
        return SWEPT[name].declared.knob.absent if name in SWEPT else "none"
    return knob_text(value)


def knob_of(condition: Spec, name: str) -> Any:
    """Return the value of knob ``name`` in ``condition``, as an experiment file would give it.

    ``name`` may be one of ``axes_of``; a setting that the condition leaves to the kernel is None.
    """
    part: Any = condition
    family, dot, setting = name.partition(".")
    if dot:
        return knob_of(condition, family).get(setting)
    for table in SWEPT[name].table:
        part = getattr(part, table)
    value = getattr(part, name)
    return SWEPT[name].declared.knob.absent if value is None else value


def knob_text(value: Any) -> str:
    """Return ``value`` as people type it: ``20``, ``false``, ``amazon``; 20.0 is ``20``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else toml_text(value)
