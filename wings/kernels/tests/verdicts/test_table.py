"""Several virtual kernels beside the first: the table, its forms, and what fails."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.formats.suites import write_ktap
from firstflight.cli.main import main
from firstflight.cli.reports import Reports
from testbed.base.errors import ConfigurationError
from testbed.experiment.lanes import write_lanes
from tests.analysis.verdicts.compare.test_attribution import AGAIN, CHROMIUM, LOAD, shifted
from tests.analysis.verdicts.compare.test_kernels import OFF, ON, Times, lane
from tests.capture.conversation import Sent
from tests.hallway import make_services
from tests.test_results_reference import described
from wings.kernels.verdicts.document import AttributionDocument, describe_attribution
from wings.kernels.verdicts.suite import render_junit, suites_of
from wings.kernels.verdicts.table import (
    FailOn,
    FailRule,
    attribute,
    attribute_lanes,
)
from wings.kernels.verdicts.terminal import (
    MAIL_WIDTH,
    render_commit,
    render_markdown,
    render_text,
    summary,
)
from wings.scenarios.tests.analysis.test_suite import read_ktap
from wings.scenarios.tests.promised import write_promises

OTHER = replace(OFF, page="wsj")
BASE: Times = {OFF: [1000.0], ON: [900.0], OTHER: [2000.0]}
SLOWER: Times = {OFF: [1000.0], ON: [900.0], OTHER: [2100.0]}


def run_of(folder: Path, lanes: dict[str, tuple[Times, Sequence[Sent]]]) -> Path:
    """A run's folder with these lanes, the base first."""
    for name, (times, segments) in lanes.items():
        lane(folder / name, name, times, segments)
    write_lanes(folder, list(lanes))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_of(tmp_path / "run", {
        "7.3": (BASE, LOAD), "mine": (BASE, shifted(0, 256)), "mine-2": (SLOWER, AGAIN),
    })  # fmt: skip


def test_each_later_kernel_is_compared_with_the_first(run: Path) -> None:
    found = attribute_lanes(run)
    assert found.base_name == "7.3"
    assert [(one.name, one.counts) for one in found.lanes] == [
        ("mine", {"phase only": 3}), ("mine-2", {"slower": 1, "other packets": 2}),
    ]  # fmt: skip
    last = found.lanes[1]
    assert last.median_pct == 0.0
    assert last.extreme is not None and last.extreme.axes["page"] == "wsj"
    assert last.changes_pct == pytest.approx((0.0, 0.0, 5.0))
    assert [row.base for row in found.rows] == [1000.0, 900.0, 2000.0]
    assert summary(found, FailRule()) == [
        "mine against 7.3: no effect but clock reads, in 3 of 3 cells. Cells: 3 phase only; "
        "median +0.00 %.",
        "mine-2 against 7.3: slower by 5.00 % in 1 of 3 cells. Cells: 1 slower, 2 other packets; "
        "median +0.00 %, most +5.00 % in page=wsj rtt_ms=20 tfo=false.",
        "Flagged: 1 of 6 cells is slower.",
    ]


@pytest.mark.parametrize(("on", "least_pct", "flagged", "code"),
                         [("slower", 0.0, 1, 1), ("slower", 5.0, 1, 1), ("slower", 5.1, 0, 0),
                          ("any", 5.1, 3, 1), ("none", 0.0, 0, 0)])  # fmt: skip
def test_what_fails(run: Path, on: FailOn, least_pct: float, flagged: int, code: int) -> None:
    found, rule = attribute_lanes(run), FailRule(on, least_pct)
    assert (found.flagged(rule), found.exit_code(rule)) == (flagged, code)


def test_a_copy_of_itself_has_no_effect(run: Path) -> None:
    found = attribute(run / "7.3", run / "7.3", run / "7.3")
    assert [one.counts for one in found.lanes] == [{"no effect": 3}] * 2
    assert found.exit_code(FailRule("any")) == 0


def test_inconclusive_fails_nothing_and_is_no_success(tmp_path: Path) -> None:
    old = lane(tmp_path / "7.3", "7.3", {CHROMIUM: [1000.0]}, LOAD)
    new = lane(tmp_path / "mine", "mine", {CHROMIUM: [1500.0]}, AGAIN)
    found = attribute(old, new)
    assert [found.exit_code(FailRule(on)) for on in ("slower", "any", "none")] == [5, 1, 0]
    assert "  # SKIP inconclusive" not in write_ktap(suites_of(found, FailRule("any")))
    assert " # SKIP inconclusive\n" in write_ktap(suites_of(found, FailRule()))


def test_broken_fails(tmp_path: Path) -> None:
    old = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, LOAD)
    found = attribute(old, lane(tmp_path / "mine", "mine", {OFF: [None], ON: [1.0]}, LOAD))
    assert found.lanes[0].counts == {"broken": 1}
    assert [found.exit_code(FailRule(on, 50.0)) for on in ("slower", "any", "none")] == [1, 1, 0]


def say_on(run: Path, lane_name: str, line: str) -> None:
    """Write a line of the kernel on the console of each trial of a lane."""
    for trial in json_lines(run / lane_name / "records.jsonl"):
        folder = run / lane_name / "trials" / trial["trial_id"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "console.log").write_text(f"[   87.810000] {line}\n")


def json_lines(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


WARNING = "WARNING: net/ipv4/tcp.c:1450 at tcp_sendmsg+0x8f/0xa0"


def test_a_kernel_that_warns_is_broken_in_every_form(run: Path) -> None:
    say_on(run, "mine", WARNING)
    found, rule = attribute_lanes(run), FailRule()
    first = found.lanes[0]
    assert first.counts == {"broken": 3}
    assert (found.exit_code(rule), found.exit_code(FailRule("any"))) == (1, 1)
    assert found.exit_code(FailRule("none")) == 0
    document = describe_attribution(found, rule)
    assert [warning["title"] for warning in document["kernels"][0]["broken_by"]] == [WARNING]
    assert document["kernels"][1]["broken_by"] == []
    for text in (render_text(found, rule), render_markdown(found, rule),
                 write_ktap(suites_of(found, rule)), render_junit(found, rule),
                 json.dumps(document)):  # fmt: skip
        assert WARNING in " ".join(text.split())
    says = summary(found, rule)
    assert says[0].startswith(f"mine against 7.3: broken by {WARNING} (3 cells). Cells: 3 broken")


def test_two_kernels_are_not_the_same_where_one_warns(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folders = ["--across", "kernel", *(str(run / name) for name in ("7.3", "mine"))]
    assert shown(capsys, tmp_path, *folders)[0] == 0
    say_on(run, "mine", WARNING)
    code, said, _ = shown(capsys, tmp_path, *folders)
    assert (code, "3 broken" in said) == (1, True)


def test_what_the_base_says_itself_is_said_and_breaks_nothing(run: Path) -> None:
    for name in ("7.3", "mine", "mine-2"):
        say_on(run, name, WARNING)
    found = attribute_lanes(run)
    assert not any("broken" in lane.counts for lane in found.lanes)
    told = [line for line in summary(found, FailRule()) if "itself says" in line]
    assert told == [f"7.3 itself says {WARNING} (3 cells): not held against the others."]
    document = describe_attribution(found, FailRule())
    assert [warning["title"] for warning in document["kernels"][1]["base_says"]] == [WARNING]


def test_what_a_kernel_has_not_of_its_patches_is_said_in_text_and_json(run: Path) -> None:
    manifest = run / "mine" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["environment"]["facts"]["kernel_misses"] = "net/ipv4/tcp_new.c is not compiled"
    manifest.write_text(json.dumps(document))
    found = attribute_lanes(run)
    said = "mine has not all of what was changed: net/ipv4/tcp_new.c is not compiled."
    assert said in summary(found, FailRule())
    kernels = describe_attribution(found, FailRule())["kernels"]
    assert [kernel["misses"] for kernel in kernels] == ["net/ipv4/tcp_new.c is not compiled", ""]


def test_the_mail_fits(run: Path) -> None:
    many = attribute(run / "7.3", *([run / "mine-2"] * 5))
    for found in (attribute_lanes(run), many):
        text = render_markdown(found, FailRule())
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= MAIL_WIDTH == 76
    text = render_markdown(attribute_lanes(run), FailRule())
    assert re.search(r"^    page +RTT +fast open +7\.3 ms +mine +mine-2$", text, re.MULTILINE)
    assert re.search(r"^    wsj .* 2000\.0  phase only  slower 5\.00 %$", text, re.MULTILINE)
    assert "The base capture ends before packet 7, new goes on" in text
    assert render_markdown(many, FailRule()).count("    page ") > 1  # the kernels go on below


def test_the_terminal_shows_the_first_packet_that_differs(run: Path) -> None:
    text = render_text(attribute_lanes(run), FailRule(), 100)
    assert "mine-2: page=wsj rtt_ms=20 tfo=false: slower, +5.000 %" in text
    assert "new  #7" in text
    assert "Flagged: 1 of 6 cells is slower." in text


def test_the_forms_for_programs(run: Path) -> None:
    found, rule = attribute_lanes(run), FailRule()
    lines = write_ktap(suites_of(found, rule)).splitlines()
    results = read_ktap(lines)
    assert lines == []
    assert (results["kernel-mine@0"][0], results["kernel-mine-2@0"][0]) == (True, False)
    assert results["page=wsj rtt_ms=20 tfo=false@1"] == (False, None)
    root = ElementTree.fromstring(render_junit(found, rule))  # noqa: S314 - our own
    assert [suite.attrib["failures"] for suite in root] == ["0", "1"]
    (failure,) = root.iter("failure")
    assert failure.attrib["type"] == "slower"
    assert failure.text is not None and "ends before packet 7" in failure.text
    document = json.loads(json.dumps(describe_attribution(found, rule), allow_nan=False))
    assert (document["flagged"], document["exit_code"]) == (1, 1)
    assert [cell["flagged"] for cell in document["kernels"][1]["cells"]] == [False, False, True]
    assert described(document, AttributionDocument) == []


def test_what_has_no_such_table(tmp_path: Path) -> None:
    one = lane(tmp_path / "7.3", "7.3", {OFF: [1000.0]}, LOAD)
    with pytest.raises(ConfigurationError, match="is no run on several kernels"):
        attribute_lanes(one)
    promises = [write_promises(tmp_path / f"scenarios-{name}", name) for name in ("7.3", "6.1")]
    with pytest.raises(ConfigurationError, match=r"no loads on virtual kernels: .* scenario all"):
        attribute(*promises)


def test_a_run_on_three_kernels_has_a_comparison_for_each_but_the_first(run: Path) -> None:
    names = ["7.3", "mine", "mine-2"]
    found = Reports().compare_lanes(run, names)
    assert (found.exit_code, found.document) == (0, None)
    assert found.kernels is not None and found.kernels["flagged"] == 1
    assert "Flagged" not in found.text  # a change is a result
    assert sorted(path.name for path in run.iterdir()) == [
        "7.3", "compare-mine-2.html", "compare-mine-2.json", "compare-mine.html",
        "compare-mine.json", "kernels.json", "kernels.md", "lanes.json", "mine", "mine-2",
    ]  # fmt: skip
    text = (run / "compare-mine-2.json").read_text()
    assert json.loads(text)["base"] == str(run / "7.3")


def shown(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> tuple[int, str, str]:
    code = main(["compare", *words], make_services(tmp_path))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_compare_takes_a_run_on_several_kernels(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = shown(capsys, tmp_path, str(run))
    assert (code, "Flagged: 1 of 6 cells is slower." in out) == (1, True)
    assert shown(capsys, tmp_path, str(run), "--min-effect", "6")[0] == 0
    assert shown(capsys, tmp_path, str(run), "--fail-on", "none")[0] == 0
    assert shown(capsys, tmp_path, str(run), "--style", "ktap")[1].startswith("KTAP version 1\n")
    assert "in virtual time:" in shown(capsys, tmp_path, str(run), "--style", "mail")[1]
    junit, mail = tmp_path / "junit.xml", tmp_path / "mail.md"
    words = [str(run / "7.3"), str(run / "mine"), "--fail-on", "any", "--json"]
    code, out, _ = shown(capsys, tmp_path, *words, "--junit", str(junit), "--markdown", str(mail))
    assert (code, json.loads(out)["kernels"][0]["counts"]) == (0, {"phase only": 3})
    assert junit.exists() and mail.exists()


@pytest.mark.parametrize("option", [["--across", "code"], ["--alpha", "0.01"], ["--allow-faster"],
                                    ["--html", "x.html"]])  # fmt: skip
def test_what_says_nothing_about_kernels_is_refused(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    code, _, err = shown(capsys, tmp_path, str(run), *option)
    assert (code, f"{option[0]}: not of virtual kernels" in err) == (2, True)


def test_a_slower_cell_says_what_moved(run: Path) -> None:
    for kernel, account in (("7.3", {"line": 2000.0}), ("mine-2", {"line": 2010.0, "queue": 90.0})):
        path = run / kernel / "records.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            record["proof"]["account"] = account
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    found = attribute_lanes(run)
    said = "+100 ms: +90 queue, +10 line"
    assert f"  Spent: {said}." in render_text(found, FailRule()).splitlines()
    assert render_markdown(found, FailRule()).count(f"Spent: {said}.") == 1
    assert "+5.00%): +90 queue, +10 line" in " ".join(render_commit(found).split())
    (_, document) = describe_attribution(found, FailRule())["kernels"]
    spent = [f"Spent: {said}." in cell["evidence"] for cell in document["cells"]]
    assert spent == [False, False, True]  # the others are not slower
