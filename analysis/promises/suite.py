"""The table of promises as the results of a test suite: JUnit XML and KTAP.

JUnit: the elements are those of the schema that Jenkins, GitLab and GitHub's reporters read
(Jenkins' junit-10.xsd).  KTAP: https://docs.kernel.org/dev-tools/ktap.html, version 1.  A suite for
each kernel, a case for each scenario.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from analysis.promises.table import Finding, Lane, PromiseRow, PromiseTable
from analysis.words import clean, xml_text

JUNIT_CLASS = "firstflight.scenario"
_SKIPPED = "unsupported"
_PASSED = ("kept", "changed")


def render_junit(table: PromiseTable) -> str:
    """Return the XML document: broken is a failure, unsupported is skipped, no answer is an error.

    What has changed since it was promised passes, and says what is done now.  Times are those that
    trials took on the wall.
    """
    suites = Element("testsuites", {"name": "firstflight scenario"})
    for place, lane in enumerate(table.lanes):
        findings = [row.findings[place] for row in table.rows]
        suite = SubElement(
            suites,
            "testsuite",
            {
                "name": xml_text(f"Kernel {lane.name}"),
                "tests": str(len(findings)),
                "failures": str(sum(one.state == "broken" for one in findings)),
                "errors": str(sum(_is_error(one) for one in findings)),
                "skipped": str(sum(one.state == _SKIPPED for one in findings)),
                "time": f"{sum(map(_seconds, findings)):.3f}",
            },
        )
        properties = SubElement(suite, "properties")
        for name, value in _facts(lane):
            SubElement(properties, "property", {"name": name, "value": xml_text(value)})
        for row, finding in zip(table.rows, findings, strict=True):
            _case(suite, row, finding)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def render_ktap(table: PromiseTable) -> str:
    """Return KTAP: each kernel is a test whose subtests are the scenarios."""
    lines = ["KTAP version 1", f"1..{len(table.lanes)}"]
    for place, lane in enumerate(table.lanes):
        findings = [row.findings[place] for row in table.rows]
        lines += ["  KTAP version 1", f"  1..{len(table.rows)}"]
        for number, (row, finding) in enumerate(zip(table.rows, findings, strict=True), 1):
            lines += (f"  # {line}" for line in _diagnostics(row, finding))
            lines.append(f"  {_result(finding)} {number} {_ktap(row.name)}{_directive(finding)}")
        whole = "not ok" if any(_result(one) == "not ok" for one in findings) else "ok"
        lines.append(f"{whole} {place + 1} {_ktap(f'kernel-{lane.name}'.replace(' ', '-'))}")
    return "\n".join(lines) + "\n"


def _case(suite: Element, row: PromiseRow, finding: Finding) -> None:
    time = f"{_seconds(finding):.3f}"
    case = SubElement(
        suite, "testcase", {"classname": JUNIT_CLASS, "name": xml_text(row.name), "time": time}
    )
    says = xml_text(row.says(finding))
    evidence = xml_text("\n".join(finding.evidence))
    if finding.state == "broken":
        failure = SubElement(case, "failure", {"message": says, "type": "broken"})
        failure.text = evidence
    elif finding.state == _SKIPPED:
        SubElement(case, "skipped", {"message": says})
    elif _is_error(finding):
        error = SubElement(case, "error", {"message": says, "type": finding.state})
        error.text = evidence
    elif finding.state == "changed":
        SubElement(case, "system-out").text = xml_text(f"changed {row.says(finding)}")


def _facts(lane: Lane) -> Iterator[tuple[str, str]]:
    yield "kernel", lane.identity.kernel or "none"
    yield "kernel_version", lane.identity.kernel_version or "none"
    yield "environment", lane.identity.environment or "none"


def _is_error(finding: Finding) -> bool:
    """Return whether there is no answer."""
    return finding.state not in ("broken", _SKIPPED, *_PASSED)


def _seconds(finding: Finding) -> float:
    record = finding.record
    return record.cost.wall_s if record is not None and record.cost is not None else 0.0


def _result(finding: Finding) -> str:
    return "ok" if finding.state in (*_PASSED, _SKIPPED) else "not ok"


def _directive(finding: Finding) -> str:
    """Return KTAP's directive, or in a word what became of a test."""
    if finding.state == _SKIPPED:
        return " # SKIP unsupported"
    if finding.state == "timeout":
        return " # TIMEOUT"
    if _is_error(finding):
        return f" # ERROR {finding.words}"
    return " # changed since it was promised" if finding.state == "changed" else ""


def _diagnostics(row: PromiseRow, finding: Finding) -> Iterator[str]:
    """Yield what is to be known of a case, before its result as KTAP has it."""
    if finding.state == "kept":
        return
    if finding.state == "changed":
        yield _ktap(f"{row.name}: changed {row.says(finding)}")
    for sentence in finding.evidence:
        for line in sentence.splitlines():
            yield _ktap(f"{row.name}: {line}")


def _ktap(text: str) -> str:
    """Return ``text`` without what would begin a directive."""
    return clean(text).replace("#", "")
