from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.report.publications import Rebuilt
from testbed.model import Record
from wings.papers.publications import rebuild_as
from wings.papers.published.reference import read_reference
from wings.papers.tests.reproductions.sweeps import check_at, condition, fetch, results_of

REFERENCE = read_reference("fastopen-preconnect")


def load(plt_ms: float, pct: float | None, tfo: bool, idle: int, page: str = "wsj") -> Record:
    asked = replace(condition(page, 100.0, tfo=tfo), preconnect_pct=pct)
    record = fetch(asked, plt_ms, 1000)
    assert record.proof is not None
    return replace(record, proof=replace(record.proof, idle_connections=idle))


def rebuilt(folder: Path, records: list[Record]) -> Rebuilt:
    found = rebuild_as(results_of(folder, records), REFERENCE)
    assert found is not None
    return found


def test_what_each_mechanism_saves(tmp_path: Path) -> None:
    records = [load(1000.0, None, False, 0), load(940.0, None, True, 0),
               load(920.0, 100.0, False, 1), load(900.0, 100.0, True, 2),
               load(990.0, 50.0, False, 4), load(950.0, 50.0, True, 5)]  # fmt: skip
    found = rebuilt(tmp_path, records)
    (table,) = found.tables
    saved = {(row[2], row[3]): row[5:] for row in table.rows}
    assert saved[100.0, "off"] == (8.0, 1) and saved[None, "on"] == (6.0, 0)
    assert saved[50.0, "on"] == (5.0, 5)
    gain = check_at(found, "PRECONNECT makes loads shorter")
    assert (gain.ours, gain.agreement) == ("8.0 %", "agrees")
    assert check_at(found, "about as much").agreement == "agrees"
    assert check_at(found, "idle connections").agreement == "agrees"


def test_outside_of_the_range_it_differs(tmp_path: Path) -> None:
    records = [load(1000.0, None, False, 0), load(1000.0, None, True, 0),
               load(880.0, 100.0, False, 3)]  # fmt: skip
    found = rebuilt(tmp_path, records)
    gain = check_at(found, "PRECONNECT makes loads shorter")
    assert (gain.ours, gain.agreement) == ("12.0 %", "differs")
    assert check_at(found, "about as much").agreement == "differs"


def test_what_was_not_performed_is_not_measured(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, [load(1000.0, None, False, 0), load(920.0, None, True, 0)])
    assert {check.agreement for check in found.checks} == {"not measured"}
