"""What a visitor sees, in the report: which moments, and what is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.words import MISSING
from testbed.model import Record
from tests.analysis.sample import conditions, record, report_section, with_milestones

OFF, ON = conditions(["amazon"], [100.0])


def written(folder: Path, *records: Record) -> str:
    """The section of the report of ``records``, without line breaks; empty if there is none."""
    return " ".join(report_section(folder, "visitor", *records).split())


def cells(section: str) -> list[str]:
    """The texts of the table's cells in its body."""
    body = section.partition("<tbody>")[2]
    return [re.sub(r"<.*?>", " ", text).strip() for text in re.findall(r"<td.*?</td>", body)]


def test_clients_that_paint_nothing_have_no_such_section(tmp_path: Path) -> None:
    assert written(tmp_path, record(OFF), record(ON)) == ""


def test_a_pair_has_both_arms_and_the_gain_of_each_moment(tmp_path: Path) -> None:
    section = written(
        tmp_path,
        with_milestones(record(OFF), ttfb_ms=310.0, fp_ms=400.0, fcp_ms=500.0, lcp_ms=600.0),
        with_milestones(
            record(ON), ttfb_ms=155.0, fp_ms=300.0, fcp_ms=400.0, lcp_ms=450.0, cls=0.0
        ),
    )
    assert cells(section) == ["100 ms", "310.0", "155.0", "50.0", "400", "300", "25.0", "500",
                              "400", "20.0", "600", "450", "25.0", "0.0016", "0.0000"]  # fmt: skip
    assert "rounds paints to 4 ms" in section
    assert "count only on pages with real contents" in section
    assert "--metric fcp_ms" in section


def test_a_first_paint_that_is_always_contentful_has_no_column(tmp_path: Path) -> None:
    section = written(tmp_path, with_milestones(record(OFF)), with_milestones(record(ON)))
    assert "First paint" not in section and "First contentful paint" in section
    assert "What was painted first was text or a picture in every load." in section


def test_without_pairs_each_condition_has_its_medians(tmp_path: Path) -> None:
    section = written(
        tmp_path, *(with_milestones(record(ON, s), lcp_ms=ms) for s, ms in ((0, 400.0), (1, 412.0)))
    )
    assert cells(section)[3] == "406 400 to 412"
    assert "gain" not in section


def test_loads_without_a_moment_are_counted(tmp_path: Path) -> None:
    section = written(
        tmp_path, with_milestones(record(OFF), lcp_ms=None), with_milestones(record(ON))
    )
    assert "1 of 2 loads by client chromium have a largest contentful paint" in section
    paints = cells(section)[7:10]
    assert paints[0] == paints[2] == MISSING != paints[1]


@pytest.mark.parametrize("paired", [True, False])
def test_the_files_for_programs_have_the_moments_too(tmp_path: Path, paired: bool) -> None:
    records = [with_milestones(record(ON), fcp_ms=400.0)]
    records += [with_milestones(record(OFF), fcp_ms=500.0)] if paired else []
    written(tmp_path, *records)
    head, row = (tmp_path / "table.csv").read_text().splitlines()
    named = dict(zip(head.split(","), row.split(","), strict=True))
    if paired:
        assert (named["fcp_off_ms"], named["fcp_on_ms"], named["fcp_improvement_pct"]) == (
            "500", "400", "20",
        )  # fmt: skip
        assert list(named)[-2:] == ["cls_off", "cls_on"]
    else:
        assert (named["fcp_ms"], list(named)[-1]) == ("400", "cls")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["table"][0].keys() == named.keys()
    cell = next(each for each in summary["cells"] if each["condition"]["tfo"])
    assert cell["milestones"]["fcp_ms"] == {"median": 400.0, "low": 400.0, "high": 400.0, "n": 1}
    assert cell["trials"][0]["milestones"]["fcp_ms"] == 400.0
