"""Ids of many trials: what their conditions add to them is written once for each.

``Trial.id`` says what an id is; one by one, those of 100,000 trials take as long as the whole plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from testbed.model import Spec, Trial, canonical
from testbed.model.knob import identity


class TrialIds:
    """Ids of trials of few conditions, which are told apart as objects: 1 and 1.0 are not one."""

    def __init__(self) -> None:
        """Know no condition yet."""
        # With the condition itself, so that no other can take its place in memory.
        self._begun: dict[int, tuple[Spec, Any]] = {}

    def of(self, trial: Trial) -> str:
        """Return the id of ``trial``."""
        condition = trial.condition
        known = self._begun.get(id(condition))
        if known is None:
            text = canonical(identity(condition))
            known = condition, hashlib.sha256(f'{{"condition":{text},'.encode())
            self._begun[id(condition)] = known
        decisive = {
            "kernel": trial.kernel,
            "kernel_version": trial.kernel_version,
            "repetition": trial.repetition,
            "seed": trial.seed,
        }
        if trial.warm_up:
            decisive["warm_up"] = True
        whole = known[1].copy()
        whole.update(canonical(decisive)[1:].encode())
        name: str = whole.hexdigest()[:16]
        return name


def list_ids(trials: Iterable[Trial]) -> list[str]:
    """Return the ids of ``trials`` in their order."""
    ids = TrialIds()
    return [ids.of(trial) for trial in trials]
