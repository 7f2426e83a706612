"""Short names of trials for people: only the knobs that differ within an experiment."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.experiment.knobs import SWEPT
from testbed.experiment.only import knob_of, knob_text
from testbed.model import Condition, Trial


def varying(conditions: Sequence[Condition]) -> tuple[str, ...]:
    """The knobs on which ``conditions`` differ, the page always among them."""
    return tuple(
        name
        for name in SWEPT
        if name == "page" or len({knob_text(knob_of(c, name)) for c in conditions}) > 1
    )


def label(trial: Trial, names: Sequence[str], seeds: bool = False) -> str:
    """``page=amazon rtt_ms=20 tfo=false``, with ``seed=3`` when there are several."""
    words = [f"{name}={knob_text(knob_of(trial.condition, name))}" for name in names]
    return " ".join([*words, f"seed={trial.seed}"] if seeds else words)
