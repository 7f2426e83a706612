"""Verdicts on selftests, as the verb prints and writes them: a table, and the forms of suites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from analysis.formats.forms import FORMS
from analysis.formats.suites import Case, State, Suite, Tested, write_junit
from testbed.base.units import format_count
from wings.kernels.selftests.verdict import State as Verdicts
from wings.kernels.selftests.verdict import Verdict

STYLES = ("table", *FORMS)
TOPIC = "selftests"
JUNIT_CLASS = "firstflight.selftests"
_STATES: dict[str, State] = {"passed": "passed", "failed": "failed", "skipped": "skipped",
                             "incomplete": "error"}  # fmt: skip


def render(verdicts: Sequence[Verdict], tested: Tested, style: str) -> str:
    """Return the verdicts in one of STYLES."""
    if style in FORMS:
        return FORMS[style].write([_suite(verdicts, tested)])
    return _table(verdicts)


def render_junit(verdicts: Sequence[Verdict], tested: Tested) -> str:
    """Return an XML document; its times are 0, for those of the machine say nothing."""
    suite = _suite(verdicts, tested)
    return write_junit(suite.name, JUNIT_CLASS, [suite], timed=False)


def summary(verdicts: Sequence[Verdict]) -> str:
    """Say how many tests and parts of them came to what."""
    counts = Counter(verdict.state for verdict in verdicts)
    parts = [part for verdict in verdicts for part in verdict.parts]
    passed = sum(part.state == "passed" for part in parts)
    said = ", ".join(f"{counts[state]} {state}" for state in get_args(Verdicts) if counts[state])
    return f"{format_count(len(verdicts), 'test')}: {said}; {passed} of {len(parts)} parts passed"


def _table(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each test that did not pass, with its reason, and the summary."""
    lines = []
    for verdict in verdicts:
        if verdict.state != "passed":
            lines.append(f"{verdict.state:<10}  {verdict.name}: {verdict.reason}")
        if verdict.state == "failed":
            lines += [f"            {line}" for line in verdict.evidence]
    return "\n".join([*lines, summary(verdicts)])


def _suite(verdicts: Sequence[Verdict], tested: Tested) -> Suite:
    name = f"Selftests of kernel {tested.name}"
    cases = [_case(verdict) for verdict in verdicts]
    return Suite(name, cases, {}, summary(verdicts), TOPIC, tested)


def _case(verdict: Verdict) -> Case:
    skipped = verdict.state == "skipped"
    return Case(
        verdict.name, _STATES[verdict.state], verdict.reason, verdict.state, verdict.evidence, "",
        f"SKIP {verdict.reason}" if skipped else "",
        () if verdict.state in {"passed", "skipped"} else (verdict.reason, *verdict.evidence)
    )  # fmt: skip
