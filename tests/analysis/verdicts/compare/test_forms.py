"""One comparison in five forms: text, JSON, JUnit XML, Markdown and HTML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.verdicts.compare.comparison import CompareOptions, Comparison
from analysis.verdicts.compare.documents import (
    describe_comparison,
    render_junit,
    render_markdown,
    render_page,
    write_files,
)
from analysis.verdicts.compare.folders import compare_results
from analysis.verdicts.compare.sentences import render_text
from testbed.base.errors import StorageError
from tests.analysis.verdicts.compare.folder import (
    FIRST,
    SECOND,
    another_page,
    made,
    with_capture,
    write_records_of,
    write_times,
)
from tests.capture.conversation import conversation

THIRD = replace(FIRST, page="wikipedia")
HOSTILE = "bell \x07 esc \x1b[31m nul \x00 <script>alert(1)</script> |pipe| `tick` @team ]]> \ufffe"
CASE_CHILDREN = {"failure", "error", "skipped", "system-out", "system-err"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """One cell slower with packets, one the same, one without a base."""
    tmp_path = tmp_path_factory.mktemp("forms")
    sides = []
    for name, plt_ms, segments in (("base", 1000.0, 3), ("new", 1250.0, 5)):
        first = with_capture(tmp_path / name, made(FIRST, 0, plt_ms), conversation(segments))
        third = made(THIRD, 0, 500.0)
        if name == "base":
            third = replace(third, outcome="failed", reason=HOSTILE, measured=None, artefacts={})
        records = [first, made(SECOND, 0, 2000.0), third]
        sides.append(write_records_of(tmp_path / name, records, [SECOND, THIRD, FIRST]))
    return replace(compare_results(sides[0], sides[1]), base="results/base", new="results/<new>")


def test_the_text_puts_the_worst_first_and_the_verdict_last(found: Comparison) -> None:
    text = render_text(found, 100)
    lines = text.splitlines()
    assert lines[0].split() == ["page", "RTT", "base", "ms", "new", "ms", "diff", "ms", "diff", "%",
                                "n", "verdict"]  # fmt: skip
    assert lines[2].split() == ["amazon", "20", "ms", "1000.0", "1250.0", "+250.0", "+25.00", "1/1",
                                "slower"]  # fmt: skip
    assert [line.split()[0] for line in lines[2:5]] == ["amazon", "wikipedia", "wsj"]
    assert "page=amazon rtt_ms=20: slower, +250.0 ms (+25.00 %);" in text
    assert "The captures part at packet 8 (8 in base, 10 in new)" in text
    assert lines[-1] == "DIFFERENT: 3 cells, 1 different, 1 inconclusive, 1 same."
    assert text.isascii() and "\x1b" not in text


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_the_table_fits_and_is_never_cut(found: Comparison, width: int) -> None:
    plainer = replace(found, cells=tuple(replace(cell, packets=None) for cell in found.cells))
    lines = render_text(plainer, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "slower" in "".join(lines) and "+25.00" in "".join(lines)


def test_the_json_holds_everything_unrounded(found: Comparison) -> None:
    document = json.loads(json.dumps(describe_comparison(found), allow_nan=False))
    assert document["verdict"] == "different" and document["exit_code"] == 1
    by_page = {cell["condition"]["page"]: cell for cell in document["cells"]}
    slower = by_page["amazon"]
    assert slower["trials"][0]["difference_ms"] == 250.0
    assert slower["packets"]["order"]["base"]["number"] == 8
    assert slower["packets"]["text"].startswith("The captures part at packet 8")
    assert by_page["wikipedia"]["base"]["plt_ms"] == []
    assert by_page["wsj"]["verdict"] == by_page["wsj"]["counts_as"] == "same"


def test_the_junit_document_is_what_readers_expect(found: Comparison) -> None:
    suites = ET.fromstring(render_junit(found))  # noqa: S314
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    assert [child.tag for child in suite] == ["properties", *["testcase"] * 3, "system-out"]
    cases = suite.findall("testcase")
    assert all({"name", "classname", "time"} == set(case.keys()) for case in cases)
    assert {child.tag for case in cases for child in case} <= CASE_CHILDREN
    by_name = {case.get("name"): case for case in cases}
    failure = by_name["page=amazon rtt_ms=20"].find("failure")
    assert failure is not None and failure.get("type") == "slower"
    assert "The captures part at packet 8" in str(failure.text)
    skipped = by_name["page=wikipedia rtt_ms=20"].find("skipped")
    assert skipped is not None and "<script>" in str(skipped.get("message"))
    assert by_name["page=wsj rtt_ms=20"].find("failure") is None


def test_the_comment_lets_no_markup_through(found: Comparison) -> None:
    comment = render_markdown(found)
    assert comment.startswith("### :x: Page load times: DIFFERENT: 3 cells, 1 different")
    assert "<script>" not in comment and "@team" not in comment and "\x1b" not in comment
    assert "results/&lt;new&gt;" in comment
    assert comment.count("<details>") == comment.count("</details>") == 2
    rows = [line for line in comment.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert all(line.replace("\\|", "").count("|") == 6 for line in rows)
    fences = [line for line in comment.splitlines() if line == "```"]
    assert len(fences) == 2


def test_the_page_shows_every_cell_and_lets_no_markup_through(found: Comparison) -> None:
    page = render_page(found)
    assert "DIFFERENT: 3 cells, 1 different, 1 inconclusive, 1 same." in page
    assert all(f">{verdict}</span>" in page for verdict in ("slower", "inconclusive", "same"))
    assert "The captures part at packet 8 (8 in base, 10 in new)" in page
    assert "results/&lt;new&gt;" in page
    assert "<script" not in page and "\x1b" not in page and "\x00" not in page
    assert "http" not in page.partition("</style>")[2]


def test_without_changes_the_comment_is_short(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0]})
    comment = render_markdown(compare_results(base, base))
    assert comment.startswith("### :white_check_mark: Page load times: SAME: 1 cell, 1 same")
    assert "<details>" not in comment and "|" not in comment
    assert comment.isascii()


def test_what_is_under_test_is_told(tmp_path: Path) -> None:
    base = write_times(tmp_path / "base", {FIRST: [1000.0]})
    new = write_times(tmp_path / "new", {FIRST: [1000.4]}, environment=another_page())
    text = render_text(compare_results(base, new, CompareOptions(("pages",))), 200)
    assert "Under test: pages.amazon (" in text
    assert "Virtual kernel: exact; a load time that moved by 0.1 % or more is different." in text


def test_tests_and_intervals_of_the_host_kernel_are_shown(tmp_path: Path) -> None:
    times = [1000.0 + i for i in range(10)]
    base = write_times(tmp_path / "base", {FIRST: times}, "host")
    new = write_times(tmp_path / "new", {FIRST: [t + 100.0 for t in times]}, "host")
    found = compare_results(base, new)
    text = render_text(found, 200)
    assert "p MW" in text and "p KS" in text and "+97.0..+103.0" in text
    assert "slower, +100.0 ms (+9.96 %, 95 % interval +97.0..+103.0 ms)" in text
    assert "failure" in render_junit(found)


def test_files_are_written_whole_or_refused(found: Comparison, tmp_path: Path) -> None:
    write_files(found, tmp_path / "a.xml", tmp_path / "a.md", tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "a.xml").read_text().startswith("<?xml")
    assert (tmp_path / "a.md").read_text().startswith("###")
    write_files(found)
    with pytest.raises(StorageError, match="make its folder"):
        write_files(found, tmp_path / "none" / "a.xml")
