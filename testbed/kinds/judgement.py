"""Judgement of a trial of any kind: what it measured, and what its captures prove."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.model import Proof


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge of a kind says of one trial.

    ``measured`` is of the kind's own type, and ``None`` where it came to no end; ``proof`` is
    ``None`` without captures or counters.
    """

    measured: object | None
    proof: Proof | None
