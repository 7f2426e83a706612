"""How connections were opened, in the report: of the first visit and of the last."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.model import Record, VisitProof
from tests.analysis.sample import conditions, record, report_section
from tests.measured import load_of

OFF, ON = conditions(["amazon"], [100.0])
FIRST = VisitProof(tcp=14, quic=0, hellos=14, hello_bytes=25180,
                   offered={"x25519": 14, "x25519mlkem768": 14}, agreed={"x25519mlkem768": 14},
                   resumed=0, early=0, early_bytes=0, accepted=0, early_requests=0,
                   round_trips=6.625, up_bytes=69826, down_bytes=394059)  # fmt: skip
LAST = replace(FIRST, resumed=6, early=6, early_bytes=3210, early_requests=9, round_trips=3.5)


def visited(good: Record, *visits: VisitProof) -> Record:
    assert good.proof is not None
    return replace(good, proof=replace(good.proof, visits=visits))


def revisited(good: Record) -> Record:
    load = load_of(good)
    return replace(good, measured=replace(load, earlier=(load,)))


def written(folder: Path, *records: Record) -> dict[str, list[str]]:
    """The columns of the section behind those of the knobs; empty where there is none."""
    section = report_section(folder, "opening", *records)
    if not section:
        return {}
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in section.split("<tr")[1:]]
    return {column[0]: list(column[1:]) for column in zip(*rows, strict=True)}


def test_loads_without_such_a_proof_have_no_section(tmp_path: Path) -> None:
    assert written(tmp_path, record(OFF)) == {}


def test_the_last_visit_stands_beside_the_first_where_it_differs(tmp_path: Path) -> None:
    found = written(tmp_path, visited(record(OFF), FIRST, LAST), visited(record(ON), FIRST, FIRST))
    assert found["Condition"] == [f"amazon, 100 ms, Fast Open {arm}" for arm in ("off", "on")]
    assert found["TCP"] == ["14", "14"]
    assert "QUIC" not in found  # no visit has any
    assert found["Hello bytes"] == ["25,180", "25,180"]
    assert found["Resumed"] == ["0 →\N{NO-BREAK SPACE}6", "0"]
    assert found["Early requests"] == ["0 →\N{NO-BREAK SPACE}9", "0"]
    assert found["Group"] == ["X25519MLKEM768"] * 2


@pytest.mark.parametrize(("third", "middle"), [(2.5, "3.5"), (9.0, "6.6")])
def test_numbers_are_medians_of_the_proven_loads(tmp_path: Path, third: float, middle: str) -> None:
    visits = (FIRST, LAST, replace(LAST, round_trips=third))
    records = [visited(record(OFF, seed), visit) for seed, visit in enumerate(visits)]
    assert written(tmp_path, *records)["Round trips"] == [middle]


def test_waterfalls_say_which_visit_they_are_of(tmp_path: Path) -> None:
    said = []
    for name, good in (("once", record(OFF)), ("again", revisited(record(OFF)))):
        written(tmp_path / name, good)
        said.append("A load is the last visit" in (tmp_path / name / "report.html").read_text())
    assert said == [False, True]
