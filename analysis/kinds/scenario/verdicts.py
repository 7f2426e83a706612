"""Verdicts on scenarios: by what became of each promise, and by the packets of all hosts."""

from __future__ import annotations

from analysis.kinds.scenario.promised import differing_captures, judge_promise
from analysis.verdicts.kind import VerdictKind
from testbed.model import CAPTURE_FILE, Record


def _capture(base: Record, new: Record) -> str:
    return next(iter(differing_captures(base, new)), CAPTURE_FILE)


DESCRIPTION = VerdictKind(
    judge=lambda match, exact, equal: judge_promise(match, exact=exact, equal=equal),
    rule="Scenarios: same is what became of the same promise.",
    capture=_capture,
    keeps_captures=True,
)
