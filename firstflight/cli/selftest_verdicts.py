"""Verdicts on selftests, as the verb prints and writes them: a table, KTAP, TAP 13, JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from analysis.formats.suites import Case, State, Suite, write_junit, write_ktap
from testbed.base.units import format_count
from testbed.kernel.selftests.verdict import State as Verdicts
from testbed.kernel.selftests.verdict import Verdict

STYLES = ("table", "ktap", "tap13")
JUNIT_CLASS = "firstflight.selftests"
_STATES: dict[str, State] = {
    "passed": "passed", "failed": "failed", "skipped": "skipped", "incomplete": "error",
}  # fmt: skip


def render(title: str, verdicts: Sequence[Verdict], style: str) -> str:
    """Return the verdicts in one of STYLES."""
    if style == "ktap":
        return write_ktap([_suite(title, verdicts)])
    if style == "tap13":
        return _tap13(verdicts)
    return _table(verdicts)


def render_junit(title: str, verdicts: Sequence[Verdict]) -> str:
    """Return an XML document; its times are 0, for those of the machine say nothing."""
    return write_junit(title, JUNIT_CLASS, [_suite(title, verdicts)], timed=False)


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


def _suite(title: str, verdicts: Sequence[Verdict]) -> Suite:
    return Suite(title, [_case(verdict) for verdict in verdicts], {}, summary(verdicts))


def _case(verdict: Verdict) -> Case:
    skipped = verdict.state == "skipped"
    return Case(
        verdict.name,
        _STATES[verdict.state],
        verdict.reason,
        verdict.state,
        verdict.evidence,
        "",
        f"SKIP {_plain(verdict.reason)}" if skipped else "",
        () if verdict.state in {"passed", "skipped"} else (verdict.reason, *verdict.evidence),
    )


def _tap13(verdicts: Sequence[Verdict]) -> str:
    """Return TAP version 13, flat: a test for each verdict, evidence before its result."""
    lines = ["TAP version 13", f"1..{len(verdicts)}"]
    for number, verdict in enumerate(verdicts, 1):
        if verdict.state in {"failed", "incomplete"}:
            lines += [f"# {_plain(line)}" for line in (verdict.reason, *verdict.evidence)]
        result = "ok" if verdict.state in {"passed", "skipped"} else "not ok"
        why = f" # SKIP {_plain(verdict.reason)}" if verdict.state == "skipped" else ""
        lines.append(f"{result} {number} {_plain(verdict.name)}{why}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return ``text`` on one line, without what would begin a directive."""
    return " ".join(text.replace("#", "").split())
