"""Neighbours in the report: what each flow got, what a call met, and how even it was."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.document import write_reports
from analysis.report.neighbours import opinion_of
from analysis.words import MISSING
from testbed.model import NeighbourFlow, Record
from tests.analysis.sample import conditions, experiment, record, report_section, write_results

OFF, _ = conditions(["amazon"], [100.0])
TEXT = "bulk up 2x + call"
CALL = NeighbourFlow("call", 1, "up", -5.0, 64.0, None, 200, 50, 20.0, 30.5, 40.0, 1.5, 70.0)
VIDEO = NeighbourFlow(
    "video down 800kbit", 1, "down", -5.0, 128.0, 0, fetches=3, fetch_p50_ms=812.5
)


def with_flows(*flows: NeighbourFlow) -> Record:
    made = record(replace(OFF, traffic=TEXT))
    assert made.proof is not None
    return replace(made, proof=replace(made.proof, neighbours=flows))


def bulk(number: int, kbit: float) -> NeighbourFlow:
    return NeighbourFlow("bulk up 2x", number, "up", -5.0, kbit, retransmits=7)


def written(folder: Path, one: Record) -> list[list[str]]:
    """The cells of the section's rows; none where there is no section."""
    section = report_section(folder, "neighbours", one)
    rows = re.findall(r"<tr data-page.*?</tr>", section, re.DOTALL)
    return [
        [re.sub(r"<.*?>", " ", cell).strip() for cell in re.findall(r"<td.*?</td>", row)]
        for row in rows
    ]


def test_loads_without_neighbours_have_no_such_section(tmp_path: Path) -> None:
    assert written(tmp_path, record(OFF)) == []


@pytest.mark.parametrize(("second", "fairness"), [(60.0, "1.000"), (0.0, "0.500")])
def test_flows_and_a_call(tmp_path: Path, second: float, fairness: str) -> None:
    flows = with_flows(bulk(1, 60.0), bulk(2, second), CALL, VIDEO)
    first, other, call, video = written(tmp_path, flows)
    assert first[-15:-10] == ["bulk up 2x, up 1", "60", "23.4", fairness, "7"]  # of 256 kbit/s
    assert other[-15] == "bulk up 2x, up 2"
    assert call[-15:] == ["call, up 1", "64", "25.0", MISSING, MISSING, "25.0", "20.0", "30.5",
                          "40.0", "1.5", "70.0", "3.60", MISSING, MISSING, MISSING]  # fmt: skip
    assert video[-15] == "video down 800kbit, down 1"
    assert video[-3:] == ["3", "812.5", MISSING]


def test_the_delay_of_a_call_is_drawn_over_the_buffer(tmp_path: Path) -> None:
    """Loads without datagrams have no such figure."""
    for calls, shown in (((CALL,), True), ((), False)):
        records = []
        for buffer in (16384, 32768, 65536, 131072, 262144):
            asked = replace(OFF, traffic=TEXT, link=replace(OFF.link, buffer_bytes=buffer))
            made = record(asked)
            assert made.proof is not None
            flows = (bulk(1, 60.0), *calls)
            records.append(replace(made, proof=replace(made.proof, neighbours=flows)))
        folder = tmp_path / str(shown)
        asked_all = tuple(one.trial.condition for one in records)
        write_results(folder, records, experiment(1, conditions=asked_all, reference=None))
        write_reports(folder)
        assert ("Delay of a call beside the page" in (folder / "report.html").read_text()) == shown


@pytest.mark.parametrize(("r_factor", "mos"), [(93.2, 4.41), (80, 4.02), (60, 3.1), (0, 1), (3, 1)])
def test_opinions_are_those_of_the_recommendation(r_factor: float, mos: float) -> None:
    assert opinion_of(r_factor) == pytest.approx(mos, abs=0.01)
