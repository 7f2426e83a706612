"""One line of the bench: what was asked, what was measured, how often and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["met", "missed", "told"]
"""``told`` is for numbers that have no target, and for targets that were not measured in full."""


@dataclass(frozen=True, slots=True)
class Result:
    """One asked number beside the measured one.

    ``n`` counts the repetitions behind ``measured``; ``how`` is one sentence.  ``real_time`` says
    that the number depends on the machine and on what else runs.  ``details`` goes to the JSON.
    """

    name: str
    asked: str
    measured: str
    verdict: Verdict
    n: int
    how: str
    real_time: bool = False
    details: dict[str, Any] = field(default_factory=dict)


def judge(within: bool, *, in_full: bool = True) -> Verdict:
    """The verdict on a number; one that was not measured in full can be missed, but not met."""
    if not within:
        return "missed"
    return "met" if in_full else "told"


def all_met(results: Sequence[Result]) -> bool:
    """Whether no target was missed."""
    return all(result.verdict != "missed" for result in results)
