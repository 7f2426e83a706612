"""The table of promises as JUnit XML and KTAP, read back."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.formats.suites import write_ktap
from wings.scenarios.analysis.promises import PromiseTable, read_promises
from wings.scenarios.analysis.suite import render_junit, suites_of
from wings.scenarios.tests.promised import write_promises

RESULT = re.compile(r"(ok|not ok) ([0-9]+) ([^#]*?)( # (SKIP|TODO|XFAIL|TIMEOUT|ERROR)?.*)?")


@pytest.fixture
def table(tmp_path: Path) -> PromiseTable:
    return read_promises([write_promises(tmp_path / v, v) for v in ("7.3", "6.1")])


def read_ktap(lines: list[str], depth: int = 0) -> dict[str, tuple[bool, str | None]]:
    """Read one level of KTAP 1 and all below it, strictly; return results by name."""
    indent = "  " * depth
    found: dict[str, tuple[bool, str | None]] = {}
    assert lines.pop(0) == f"{indent}KTAP version 1"
    plan = re.fullmatch(rf"{indent}1\.\.([0-9]+)", lines.pop(0))
    assert plan
    for number in range(1, int(plan[1]) + 1):
        if lines[0] == f"{indent}  KTAP version 1":
            found |= read_ktap(lines, depth + 1)
        while lines[0].startswith(f"{indent}# "):
            lines.pop(0)
        line = lines.pop(0)
        assert line.startswith(indent)
        result = RESULT.fullmatch(line.removeprefix(indent))
        assert result and int(result[2]) == number, line
        found[f"{result[3]}@{depth}"] = result[1] == "ok", result[5]
    return found


def test_each_kernel_is_a_suite_and_each_scenario_a_case(table: PromiseTable) -> None:
    root = ElementTree.fromstring(render_junit(table))  # noqa: S314 - our own
    assert [suite.attrib["name"] for suite in root] == ["Kernel virtual 7.3", "Kernel virtual 6.1"]
    for suite in root:
        counted = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")}
        assert counted == {"tests": 5, "failures": 1, "errors": 1}
        assert suite.attrib["skipped"] == "1"
        cases = {case.attrib["name"]: case for case in suite.iter("testcase")}
        assert list(cases) == ["kept", "broken", "changed", "lacking", "stuck"]
        assert [child.tag for child in cases["kept"]] == []
        failure = cases["broken"].find("failure")
        assert failure is not None and failure.text is not None
        assert failure.text.splitlines()[1] == "line 4: more"
        assert failure.attrib["message"].startswith("line 3: it has no data")
        skipped, error = cases["lacking"].find("skipped"), cases["stuck"].find("error")
        assert skipped is not None and skipped.attrib["message"] == "no MD5 here"
        assert error is not None and error.attrib["type"] == "timeout"
        said = cases["changed"].find("system-out")
        assert said is not None and said.text is not None
        assert said.text.startswith("changed since Linux 4.1: It does something else.")


def test_ktap_is_what_the_kernel_s_document_says(table: PromiseTable) -> None:
    lines = write_ktap(suites_of(table)).splitlines()
    found = read_ktap(lines)
    assert lines == []
    assert found == {"kept@1": (True, None), "broken@1": (False, None), "changed@1": (True, None),
                     "lacking@1": (True, "SKIP"), "stuck@1": (False, "TIMEOUT"),
                     "kernel-virtual-7.3@0": (False, None),
                     "kernel-virtual-6.1@0": (False, None)}  # fmt: skip


def test_ktap_says_before_a_result_what_is_not_as_promised(table: PromiseTable) -> None:
    lines = write_ktap(suites_of(table)).splitlines()
    at = lines.index("  not ok 2 broken")
    assert lines[at - 1] == "  # broken: line 4: more"
    assert "  ok 3 changed # changed since it was promised" in lines
    assert not any("\x1b" in line for line in lines)
