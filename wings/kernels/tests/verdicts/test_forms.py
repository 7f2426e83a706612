"""The verdicts on kernels in the forms of others, each read as those read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.formats.forms import FORMS
from analysis.formats.suites import Suite, write_tap13
from tests.analysis.verdicts.compare.test_attribution import AGAIN, CHROMIUM, LOAD, shifted
from tests.analysis.verdicts.compare.test_kernels import OFF, lane
from wings.kernels.formats.netdev import name_for_netdev
from wings.kernels.tests.verdicts.test_table import BASE, SLOWER, run_of
from wings.kernels.verdicts import suite as kernel_suite
from wings.kernels.verdicts.printed import STYLES, show_verdicts
from wings.kernels.verdicts.table import Attribution, FailRule, attribute, attribute_lanes
from wings.kernels.verdicts.terminal import COMMIT_WIDTH, render_commit
from wings.scenarios.analysis import suite as scenario_suite
from wings.scenarios.analysis.promises import read_promises
from wings.scenarios.tests.promised import write_promises

RULE = FailRule()
PROMISED = {"kept": "pass", "broken": "fail", "changed": "pass", "lacking": "skip", "stuck": "fail"}
STATUS = {"kept": "PASS", "broken": "FAIL", "changed": "PASS", "lacking": "SKIP", "stuck": "ERROR"}


@pytest.fixture
def kernels(tmp_path: Path) -> Attribution:
    return attribute_lanes(run_of(tmp_path / "run", {
        "7.3": (BASE, LOAD), "mine": (BASE, shifted(0, 256)), "mine-2": (SLOWER, AGAIN),
    }))  # fmt: skip


@pytest.fixture
def unclear(tmp_path: Path) -> Attribution:
    """One cell that cannot be told, of a browser with one seed."""
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0], CHROMIUM: [1000.0]}, LOAD)
    new = lane(tmp_path / "new", "new", {OFF: [1000.0], CHROMIUM: [1500.0]}, AGAIN)
    return attribute(old, new)


def printed_by_a_kselftest(text: str) -> str:
    """A test's output as the runner of kselftests prints it: behind ``# ``, between its own."""
    lines = (f"# {line}" for line in text.splitlines())
    return "\n".join(["TAP version 13", "1..1", "# selftests: net: pages.sh", *lines,
                      "ok 1 selftests: net: pages.sh"])  # fmt: skip


def read_as_netdev_does(log: str) -> dict[str, str]:
    """Return the subtests of a log by their names, as the CI of netdev takes them.

    Those behind ``# TAP version`` count, as long as lines begin so; a name ends before ``#``; a
    directive counts where it begins with skip, in any case.
    """
    found: dict[str, str] = {}
    inside = False
    for line in log.split("\n"):
        if not inside:
            inside = line.startswith("# TAP version ")
            continue
        if not line.startswith("# "):
            inside = False
            continue
        result = re.match(r"(not )?ok (\d+)(?: -)? ([^#]*[^ #])(?: +# +(.*))?$", line[2:])
        if result is None:
            assert not re.match(r"(not )?ok ", line[2:]), line
            continue
        name, remark = name_for_netdev(result[3]), (result[4] or "").lower()
        assert name not in found
        found[name] = "fail" if result[1] else "skip" if remark.startswith("skip") else "pass"
    return found


def test_netdev_finds_every_cell_in_tap13(kernels: Attribution) -> None:
    text = FORMS["tap13"].write(kernel_suite.suites_of(kernels, RULE))
    assert text.splitlines()[:2] == ["TAP version 13", "1..6"]
    found = read_as_netdev_does(printed_by_a_kselftest(text))
    assert found["Kernel-mine-2-page-wsj-rtt-ms-20-tfo-false"] == "fail"
    assert sorted(found.values()) == ["fail", *["pass"] * 5]


def test_what_cannot_be_told_is_skipped_and_not_the_whole_test(unclear: Attribution) -> None:
    text = FORMS["tap13"].write(kernel_suite.suites_of(unclear, RULE))
    found = read_as_netdev_does(printed_by_a_kselftest(text))
    assert sorted(found.values()) == ["pass", "skip"]
    # By any of these words netdev's CI judges the whole program.
    assert not re.search(r" # SKIP|SKIP:|\[SKIP\]|\[FAIL\]| FAIL:|\n# not ok 1", text)


def test_netdev_finds_every_scenario_in_tap13(tmp_path: Path) -> None:
    table = read_promises([write_promises(tmp_path / "7.3", "7.3")])
    found = read_as_netdev_does(
        printed_by_a_kselftest(FORMS["tap13"].write(scenario_suite.suites_of(table)))
    )
    assert found == PROMISED


def test_tap13_without_a_case_says_so() -> None:
    assert write_tap13([Suite("none", [])]) == "TAP version 13\n1..0\n"


def flattened(run: dict[str, Any]) -> dict[tuple[str, str, str | None], bool]:
    """Return a run's tests and their cases, each named once, as netdev's CI keeps its history."""
    assert {"executor", "branch", "start", "end", "results"} <= set(run)
    found: dict[tuple[str, str, str | None], bool] = {}
    for test in run["results"]:
        assert {"test", "group", "result", "link"} <= set(test)
        for case in (None, *test["results"]):
            key = test["group"], test["test"], case and case["test"]
            assert key not in found
            result = (case or test)["result"]
            assert result in ("pass", "fail", "skip")
            found[key] = result == "pass"
    return found


def test_a_run_is_one_of_netdev_s_results(kernels: Attribution, unclear: Attribution) -> None:
    run = json.loads(FORMS["netdev"].write(kernel_suite.suites_of(kernels, RULE)))
    found = flattened(run)
    assert found["firstflight", "page-loads-mine", None] is True
    assert found["firstflight", "page-loads-mine-2", None] is False
    assert found["firstflight", "page-loads-mine-2", "page-wsj-rtt-ms-20-tfo-false"] is False
    assert len(found) == 2 + 6
    assert (run["branch"], run["link"].endswith("/run/mine-2")) == ("mine-2", True)
    assert run["start"] <= run["end"]
    # A test has the same name on each branch, whatever the kernel is called.
    (test,) = json.loads(FORMS["netdev"].write(kernel_suite.suites_of(unclear, RULE)))["results"]
    assert (test["test"], test["result"]) == ("page-loads", "pass")
    assert [case["result"] for case in test["results"]] == ["pass", "skip"]


def test_scenarios_are_one_of_netdev_s_results(tmp_path: Path) -> None:
    table = read_promises([write_promises(tmp_path / "7.3", "7.3")])
    run = json.loads(FORMS["netdev"].write(scenario_suite.suites_of(table)))
    assert len(flattened(run)) == 1 + len(PROMISED)
    (test,) = run["results"]
    assert {case["test"]: case["result"] for case in test["results"]} == PROMISED


KCIDB: dict[str, dict[str, str | type | tuple[type, ...]]] = {
    "checkouts": {
        "id": r"[a-z0-9_]+:[^\0]*", "origin": r"[a-z0-9_]+", "git_commit_name": r"[^\0]*",
        "patchset_hash": r"|[0-9a-f]{64}", "comment": r"[^\0]*", "start_time": r"\d{4}-.*T.*",
        "valid": bool, "misc": dict,
    },
    "builds": {
        "id": r"[a-z0-9_]+:[^\0]*", "checkout_id": r"[a-z0-9_]+:[^\0]*", "origin": r"[a-z0-9_]+",
        "comment": r"[^\0]*", "architecture": r"[a-z0-9_]*", "compiler": r"[^\0]*",
        "config_name": r"[^\0]*", "status": r"FAIL|ERROR|MISS|PASS|DONE|SKIP", "misc": dict,
    },
    "tests": {
        "id": r"[a-z0-9_]+:[^\0]*", "build_id": r"[a-z0-9_]+:[^\0]*", "origin": r"[a-z0-9_]+",
        "path": r"([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?", "comment": r"[^\0]*",
        "status": r"FAIL|ERROR|MISS|PASS|DONE|SKIP", "start_time": r"\d{4}-.*T.*",
        "duration": (int, float), "number": dict, "misc": dict, "log_excerpt": r"[^\0]{0,16384}",
    },
}  # fmt: skip
"""What KCIDB's schema 5.3 allows of what we write, by pattern or type; no other property is."""
DUE = {"checkouts": {"id", "origin"}, "builds": {"id", "checkout_id", "origin"},
       "tests": {"id", "build_id", "origin"}}  # fmt: skip


def checked(text: str) -> dict[str, Any]:
    """Return a document of KCIDB's that its rules allow, all of whose references lead somewhere."""
    document: dict[str, Any] = json.loads(text)
    assert document.pop("version") == {"major": 5, "minor": 3}
    assert set(document) == set(KCIDB)
    for name, objects in document.items():
        for each in objects:
            assert DUE[name] <= set(each) <= set(KCIDB[name]), set(each) - set(KCIDB[name])
            for key, value in each.items():
                rule = KCIDB[name][key]
                if isinstance(rule, str):
                    assert isinstance(value, str) and re.fullmatch(rule, value, re.S), (key, value)
                else:
                    assert isinstance(value, rule), (key, value)
            if "number" in each:
                assert set(each["number"]) == {"value", "unit"}
                assert isinstance(each["number"]["value"], float)
        assert len({each["id"] for each in objects}) == len(objects)
    for name, key, of in (("builds", "checkout_id", "checkouts"), ("tests", "build_id", "builds")):
        assert {each[key] for each in document[name]} <= {each["id"] for each in document[of]}
    return document


def test_kcidb_has_what_every_cell_measured(kernels: Attribution) -> None:
    document = checked(FORMS["kcidb"].write(kernel_suite.suites_of(kernels, RULE)))
    assert [len(document[name]) for name in KCIDB] == [2, 2, 6]
    (slower,) = [test for test in document["tests"] if test["status"] == "FAIL"]
    assert slower["path"] == "firstflight.page_loads.page_wsj_rtt_ms_20_tfo_false"
    assert slower["number"] == {"value": 2100.0, "unit": "ms"}
    assert (slower["misc"]["base"], slower["misc"]["verdict"]) == (2000.0, "slower")
    assert slower["misc"]["change_pct"] == pytest.approx(5.0)


def test_kcidb_names_the_user_s_patches_as_its_schema_says(tmp_path: Path) -> None:
    digests = {"0001-um.patch": "0" * 64, "own/0001-mine.patch": "a" * 64}
    found = kernels_with(tmp_path, {"kernel.patches": json.dumps(digests)})
    (checkout,) = checked(FORMS["kcidb"].write(kernel_suite.suites_of(found, RULE)))["checkouts"]
    # printf '%064d\n' 0 | tr 0 a | sha256sum
    assert checkout["patchset_hash"] == (
        "44c2336fedab8ff6a85c74c2b94165377b0981f526adb9487895ca6314165e86"
    )


def kernels_with(tmp_path: Path, parts: dict[str, str]) -> Attribution:
    """Two kernels, of the later of which the manifest says ``parts`` as well."""
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, LOAD)
    new = lane(tmp_path / "new", "new", {OFF: [1000.0]}, LOAD)
    found = attribute(old, new)
    manifest = json.loads((new / "manifest.json").read_text())
    manifest["environment"]["parts"] |= parts
    (new / "manifest.json").write_text(json.dumps(manifest))
    return found


def test_kcidb_has_every_scenario(tmp_path: Path) -> None:
    table = read_promises([write_promises(tmp_path / v, v) for v in ("7.3", "6.1")])
    document = checked(FORMS["kcidb"].write(scenario_suite.suites_of(table)))
    assert [len(document[name]) for name in KCIDB] == [2, 2, 10]
    assert {test["comment"]: test["status"] for test in document["tests"]} == STATUS


def test_a_commit_message_has_before_and_after(kernels: Attribution) -> None:
    text = render_commit(kernels)
    assert max(map(len, text.splitlines())) <= COMMIT_WIDTH
    assert "mine after: no effect but clock reads, in 3 of 3 cells." in " ".join(text.split())
    assert "  page=wsj rtt_ms=20 tfo=false: 2000.0 -> 2100.0 ms (+5.00%)" in text.splitlines()


@pytest.mark.parametrize("style", STYLES)
def test_every_style_prints_something_of_its_own(
    kernels: Attribution, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_verdicts(kernels, RULE, style, False, None, None)
    shown = capsys.readouterr().out
    others = []
    for other in STYLES:
        show_verdicts(kernels, RULE, other, False, None, None)
        others.append(capsys.readouterr().out)
    assert shown and others.count(shown) == 1
