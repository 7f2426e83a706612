"""Results of test suites as JUnit XML, KTAP and TAP, for whatever judges in cases.

JUnit: the elements are those of the schema that Jenkins, GitLab and GitHub's reporters read
(Jenkins' junit-10.xsd).  KTAP: https://docs.kernel.org/dev-tools/ktap.html, version 1.  A suite is
a test whose subtests are its cases.  TAP: testanything.org, version 13, which is flat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from analysis.words import clean, xml_text

State = Literal["passed", "failed", "skipped", "error"]


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a suite: what became of it, and why.

    ``kind`` is the type of a failure or an error, ``evidence`` what is to be seen of it.
    ``remark`` is what JUnit shows of a case that passed, ``directive`` KTAP's word behind the
    result, such as ``SKIP unsupported``, and ``diagnostics`` are its lines before the result.
    """

    name: str
    state: State
    says: str = ""
    kind: str = ""
    evidence: tuple[str, ...] = ()
    remark: str = ""
    directive: str = ""
    diagnostics: tuple[str, ...] = ()
    seconds: float = 0.0
    value: tuple[float, str] | None = None
    """What was measured, and its unit."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known of it, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Tested:
    """Kernel that a suite was run on, and what its results folder says of the run."""

    __test__ = False  # no test class of pytest's

    name: str
    """Its version, or its own name."""
    folder: str
    """The results folder."""
    began: str
    """When the run began (ISO 8601)."""
    ended: str
    """When its records were last written (ISO 8601)."""
    parts: Mapping[str, str]
    """The environment's parts, by name."""
    environment: str
    """The environment's id."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases under one name, and facts about all of them; ``notes`` are what JUnit shows of it.

    ``topic`` is what is tested, whatever the kernel: ``page loads``.
    """

    name: str
    cases: Sequence[Case]
    facts: dict[str, str] = field(default_factory=dict)
    notes: str = ""
    topic: str = "tests"
    tested: Tested | None = None

    def count(self, state: State) -> int:
        """Return how many cases ended in ``state``."""
        return sum(case.state == state for case in self.cases)


class Form(NamedTuple):
    """A form of suites for other programs: what it is, in words of help, and what writes it."""

    words: str
    write: Callable[[Sequence[Suite]], str]


def write_junit(title: str, classname: str, suites: Sequence[Suite], *, timed: bool = True) -> str:
    """Return ``suites`` as an XML document; one that is not ``timed`` took no time that matters."""
    root = Element("testsuites", {"name": title})
    for suite in suites:
        counts = {"name": xml_text(suite.name), "tests": str(len(suite.cases)),
                  "failures": str(suite.count("failed")),
                  "errors": str(suite.count("error"))}  # fmt: skip
        skipped = {"skipped": str(suite.count("skipped"))}
        if timed:
            time = f"{sum(case.seconds for case in suite.cases):.3f}"
            element = SubElement(root, "testsuite", counts | skipped | {"time": time})
        else:
            root.attrib |= counts | {"time": "0"}
            element = SubElement(root, "testsuite", {**root.attrib, **skipped})
        properties = SubElement(element, "properties")
        for name, value in suite.facts.items():
            SubElement(properties, "property", {"name": name, "value": xml_text(value)})
        for case in suite.cases:
            _add_case(element, classname, case, f"{case.seconds:.3f}" if timed else "0")
        if suite.notes:
            SubElement(element, "system-out").text = xml_text(suite.notes)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def write_ktap(suites: Sequence[Suite]) -> str:
    """Return ``suites`` as KTAP; one is ``not ok`` if a case of it is."""
    lines = ["KTAP version 1", f"1..{len(suites)}"]
    for place, suite in enumerate(suites, 1):
        lines += ["  KTAP version 1", f"  1..{len(suite.cases)}"]
        for number, case in enumerate(suite.cases, 1):
            lines += (f"  # {_ktap(line)}" for line in case.diagnostics)
            directive = f" # {_ktap(case.directive)}" if case.directive else ""
            lines.append(f"  {_result(case)} {number} {_ktap(case.name)}{directive}")
        whole = "not ok" if any(_result(case) == "not ok" for case in suite.cases) else "ok"
        name = suite.name[:1].lower() + suite.name[1:].replace(" ", "-")
        lines.append(f"{whole} {place} {_ktap(name)}")
    return "\n".join(lines) + "\n"


def write_tap13(suites: Sequence[Suite]) -> str:
    """Return ``suites`` as flat TAP 13: all cases, named by their suite where there are several.

    Netdev's CI reads it where a kselftest prints it, and takes ``SKIP`` in capitals for a word on
    the whole test, as of one case it is not.
    """
    several = len(suites) > 1
    cases = [(suite, case) for suite in suites for case in suite.cases]
    lines = ["TAP version 13", f"1..{len(cases)}"]
    for number, (suite, case) in enumerate(cases, 1):
        name = f"{suite.name}: {case.name}" if several else case.name
        skipped = case.state == "skipped"
        says = _ktap(case.directive)
        if skipped:
            says = f"skip {says.removeprefix('SKIP ')}"
        time = f"time={case.seconds * 1000:.0f}ms" if case.seconds else ""
        remark = " ".join(filter(None, (says, time)))
        lines += (f"# {_ktap(line)}" for line in case.diagnostics)
        lines.append(f"{_result(case)} {number} - {_ktap(name)}{f' # {remark}' if remark else ''}")
    return "\n".join(lines) + "\n"


def _add_case(suite: Element, classname: str, case: Case, time: str) -> None:
    named = {"classname": classname, "name": xml_text(case.name), "time": time}
    element = SubElement(suite, "testcase", named)
    says = xml_text(case.says)
    if case.state in ("failed", "error"):
        tag = "failure" if case.state == "failed" else "error"
        problem = SubElement(element, tag, {"message": says, "type": case.kind})
        problem.text = xml_text("\n".join(case.evidence))
    elif case.state == "skipped":
        SubElement(element, "skipped", {"message": says})
    elif case.remark:
        SubElement(element, "system-out").text = xml_text(case.remark)


def _result(case: Case) -> str:
    return "ok" if case.state in ("passed", "skipped") else "not ok"


def _ktap(text: str) -> str:
    """Return ``text`` without what would begin a directive."""
    return clean(text.replace("#", ""))
