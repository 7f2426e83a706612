"""Tally of a run: the outcome of each planned trial, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from testbed.base.errors import (
    EXIT_INCOMPLETE,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
    EXIT_MISSING,
    EXIT_OK,
    EXIT_OUT_OF_TOLERANCE,
    worst_exit,
)
from testbed.model import Outcome, Record, Trial

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Tally:
    """Planned trials by outcome; ``not_run`` have no record yet.  Warm-ups are left out.

    ``unsettled`` names the cells whose intervals are still wider than asked.
    """

    outcomes: dict[Outcome, int]
    not_run: int
    interrupted: bool
    unsettled: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The gravest of what happened."""
        held = {
            EXIT_INTERRUPTED: self.interrupted,
            EXIT_INCOMPLETE: self.not_run or self.outcomes["failed"] or self.outcomes["timeout"],
            EXIT_MISSING: self.outcomes["unsupported"],
            EXIT_OUT_OF_TOLERANCE: self.outcomes["lab_mismatch"] or self.outcomes["unproven"],
            EXIT_INCONCLUSIVE: self.unsettled,
        }
        return worst_exit([EXIT_OK, *(code for code, holds in held.items() if holds)])

    def sentence(self) -> str:
        """Return ``23 ok, 1 timeout, 2 not run``."""
        words = [f"{count} {outcome}" for outcome, count in self.outcomes.items() if count]
        if self.not_run:
            words.append(f"{self.not_run} not run")
        return ", ".join(words)


def tally(
    trials: Sequence[Trial], records: Iterable[Record], *, interrupted: bool = False,
    unsettled: tuple[str, ...] = (),
) -> Tally:  # fmt: skip
    """Settle each of ``trials``: its ``ok`` record if it has one, else its last attempt."""
    settled: dict[str, Record] = {}
    for record in records:
        before = settled.get(record.trial_id)
        if before is None or before.outcome != "ok":
            settled[record.trial_id] = record
    outcomes: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    counted = [trial for trial in trials if not trial.warm_up]
    for trial in counted:
        if trial.id in settled:
            outcomes[settled[trial.id].outcome] += 1
    return Tally(outcomes, len(counted) - sum(outcomes.values()), interrupted, unsettled)
