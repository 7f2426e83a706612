"""Judgement of a trial of any kind: whether it was measured, and what its captures prove."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.model import Proof, ScenarioResult


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge of a kind says of one trial.

    ``measured`` is whether it came to its end; ``proof`` is ``None`` without captures or counters.
    Of scenarios: ``scenario`` is whether the promise was kept.
    """

    measured: bool
    proof: Proof | None
    scenario: ScenarioResult | None = None
