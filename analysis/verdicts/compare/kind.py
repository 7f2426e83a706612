"""Description of a kind of trial for verdicts: how two results compare, what a baseline keeps.

That of the kind NAME is in ``analysis/kinds/NAME/verdicts.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from analysis.records.kind import read_description
from analysis.verdicts.compare.comparison import CellFinding
from analysis.verdicts.compare.matching import Match
from testbed.model import CAPTURE_FILE, Record

Judge = Callable[[Match, bool, bool], CellFinding]
"""From a condition in both folders to its verdict; whether both kernels run in virtual time, and
whether nothing is under test."""


@dataclass(frozen=True, slots=True)
class VerdictKind:
    """How results of a kind are compared, and what a baseline keeps of them.

    Attributes:
        judge: gives the verdict on a cell, where the metric alone does not.
        rule: what that verdict is by, in a sentence.
        capture: the name of the capture to compare, of two records of one trial.
        keeps_captures: whether a baseline has the packets, as all that is shown is drawn from them.
        trim: a record without what does not belong into a baseline.
    """

    judge: Judge | None = None
    rule: str = ""
    capture: Callable[[Record, Record], str] = lambda _base, _new: CAPTURE_FILE
    keeps_captures: bool = False
    trim: Callable[[Record], Record] = lambda record: record


def verdicts_of(kind: str) -> VerdictKind:
    """Return the description of a kind for verdicts.

    Raises:
        ConfigurationError: there is no such kind.
    """
    description: VerdictKind = read_description(kind, "verdicts")
    return description
