"""The table of promises as the results of a test suite.

A suite for each kernel, a case for each scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.formats.suites import Case, State, Suite, write_junit
from analysis.records.tested import read_tested
from wings.scenarios.analysis.promises import Finding, PromiseRow, PromiseTable

JUNIT_CLASS = "firstflight.scenario"
TOPIC = "promises"
_STATES: dict[str, State] = {"kept": "passed", "changed": "passed", "broken": "failed",
                             "unsupported": "skipped"}  # fmt: skip
"""What becomes of a promise as of a test; whatever else it is has no answer."""


def render_junit(table: PromiseTable) -> str:
    """Return the XML document: broken is a failure, unsupported is skipped, no answer is an error.

    What has changed since it was promised passes, and says what is done now.  Times are those that
    trials took on the wall.
    """
    return write_junit("firstflight scenario", JUNIT_CLASS, suites_of(table))


def suites_of(table: PromiseTable) -> list[Suite]:
    """Return the suites."""
    return [
        Suite(f"Kernel {lane.name}", [_case(row, row.findings[place]) for row in table.rows],
              {"kernel": lane.identity.kernel or "none",
               "kernel_version": lane.identity.kernel_version or "none",
               "environment": lane.identity.environment or "none"}, topic=TOPIC,
              tested=read_tested(lane.results.folder, lane.name))
        for place, lane in enumerate(table.lanes)
    ]  # fmt: skip


def _case(row: PromiseRow, finding: Finding) -> Case:
    changed, record = finding.state == "changed", finding.record
    return Case(row.name, _STATES.get(finding.state, "error"), row.says(finding), finding.state,
                tuple(finding.evidence), f"changed {row.says(finding)}" if changed else "",
                _directive(finding), tuple(_diagnostics(row, finding)),
                record.cost.wall_s if record and record.cost else 0.0)  # fmt: skip


def _directive(finding: Finding) -> str:
    """Return KTAP's directive, or in a word what became of a test."""
    if finding.state == "unsupported":
        return "SKIP unsupported"
    if finding.state == "timeout":
        return "TIMEOUT"
    if finding.state not in _STATES:
        return f"ERROR {finding.words}"
    return "changed since it was promised" if finding.state == "changed" else ""


def _diagnostics(row: PromiseRow, finding: Finding) -> Iterator[str]:
    """Yield what is to be known of a case, before its result as KTAP has it."""
    if finding.state == "kept":
        return
    if finding.state == "changed":
        yield f"{row.name}: changed {row.says(finding)}"
    for sentence in finding.evidence:
        for line in sentence.splitlines():
            yield f"{row.name}: {line}"
