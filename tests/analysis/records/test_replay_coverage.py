"""Replay coverage: counted by load and by cell, listed, and told wherever it is not whole."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.records.replay_coverage import (
    ReplayCoverage,
    count_record,
    coverage_of,
    describe,
    list_not_exact,
)
from analysis.report.document import write_reports
from analysis.report.terminal import render_table
from testbed.model import PageCoverage, Record, Replay
from tests.analysis.sample import (
    answered_inexactly,
    broken,
    conditions,
    experiment,
    missed,
    over_tls,
    record,
    write_results,
    write_tls_sample,
)
from tests.measured import load_of

OFF, ON = conditions(["amazon"], [100.0])


@pytest.fixture
def good() -> Record:
    return record(OFF)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_tls_sample(tmp_path_factory.mktemp("tls"))
    write_reports(folder)
    return folder


def test_counts_of_a_load(good: Record) -> None:
    assert count_record(good) == ReplayCoverage(exact=62, loads=1)
    assert count_record(answered_inexactly(good, 2)) == ReplayCoverage(60, 2, 0, 0, 1)
    assert count_record(missed(good, "GET http://x/")) == ReplayCoverage(62, 0, 1, 0, 1)
    assert count_record(replace(good, replay=None)) == ReplayCoverage()


def test_what_nothing_was_asked_instead_of_was_not_made(good: Record) -> None:
    one = answered_inexactly(good)
    load = replace(load_of(one), missing=(*load_of(one).missing, "http://x/1"), pinned=True)
    assert count_record(replace(one, measured=load)) == ReplayCoverage(61, 1, 0, 1, 1, pinned=1)


def partly(good: Record, missing: tuple[str, ...] = ("http://x/1",)) -> Record:
    """The load of a page of which 3 of 4 requests were made, one with a made-up body."""
    load = replace(load_of(good), missing=missing)
    page = PageCoverage(4, 1000, 4 - len(missing), 800, 1, 200)
    return replace(good, measured=load, replay=replace(good.replay or Replay(0), page=page))


def test_how_much_of_the_recording_was_made(good: Record) -> None:
    counted = coverage_of([partly(good), partly(good)])
    assert counted.covered == "75 (80 of bytes, 25 made up)"
    assert (counted.due, counted.not_made, counted.made_up) == (8, 2, 2)
    assert coverage_of([good]).covered == "\u2013"
    whole = coverage_of([partly(good, ())])
    assert whole.whole and not whole.plain


def test_each_row_says_how_much_of_the_recording_it_is_of(tmp_path: Path) -> None:
    records = [partly(record(condition)) for condition in (OFF, ON)]
    write_results(tmp_path, records, experiment(conditions=(OFF, ON)))
    write_reports(tmp_path)
    text = render_table(tmp_path, 160)
    assert "recording %" in text and "75 (80 of bytes, 25 made up)" in text
    assert "75 (80 of bytes, 25 made up)" in (tmp_path / "report.html").read_text()
    (row,) = csv.DictReader((tmp_path / "table.csv").open())
    assert (row["bytes_covered_pct"], row["bytes_made_up_pct"]) == ("80", "25")


def test_all_loads_together(good: Record) -> None:
    records = [good, answered_inexactly(good, 3), broken(good, "timeout")]
    total = coverage_of(records)
    assert (total.exact, total.inexact, total.loads, total.requests) == (183, 3, 3, 186)
    assert not total.whole
    assert total.exact_pct == pytest.approx(98.387, abs=0.001)
    assert coverage_of([]).whole and coverage_of([]).exact_pct is None


@pytest.mark.parametrize(("counted", "told"), [
    (ReplayCoverage(62, loads=1), "All 62 requests of 1 load were answered exactly."),
    (
        ReplayCoverage(62, loads=2, sockets=2),
        "All 62 requests of 2 loads were answered exactly. 2 WebSockets refused: the page holds no "
        "messages of theirs.",
    ),
    (
        ReplayCoverage(62, loads=2, talks=3, talks_inexact=1),
        "All 62 requests of 2 loads were answered exactly. 3 WebSockets replayed, 1 of them "
        "inexactly.",
    ),
    (ReplayCoverage(97, 2, 1, 0, 4),
     "97.00 % of 100 requests were answered exactly; 2 inexactly, 1 missed."),
    (
        ReplayCoverage(10, 0, 0, 3, 1),
        "100.00 % of 10 requests were answered exactly; 0 inexactly, 0 missed, "
        "and 3 recorded were not made.",
    ),
    (
        ReplayCoverage(62, loads=1, made_bytes=400, made_up=7, made_up_bytes=100),
        "All 62 requests of 1 load were answered exactly. 7 bodies were never recorded and are "
        "made up in their size: 25 % of all bytes.",
    ),
])  # fmt: skip
def test_in_words(counted: ReplayCoverage, told: str) -> None:
    assert describe(counted) == told


def test_the_list_has_misses_first_and_each_request_once(good: Record) -> None:
    strange = missed(good, "GET http://x/b", "GET http://x/b", "GET http://x/\x1b[2J")
    records = [answered_inexactly(good), answered_inexactly(good), strange]
    listed, more = list_not_exact(records)
    assert [(one.asked, one.loads) for one in listed] == [
        ("GET http://x/\ufffd[2J", 1),
        ("GET http://x/b", 1),
        ("GET https://ads.amazon.test/pixel?slot=0&t=170000", 2),
    ]
    assert [one.answered for one in listed] == [
        None, None, "GET https://ads.amazon.test/pixel?slot=0&t=99",
    ]  # fmt: skip
    assert more == 0


def test_the_list_is_capped_and_counted(good: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.records.replay_coverage.MAX_LISTED", 4)
    listed, more = list_not_exact([answered_inexactly(good, 9)])
    assert (len(listed), more) == (4, 5)


def test_the_table_has_the_counts_of_both_arms(tls: Path) -> None:
    with (tls / "table.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0])[:5] == ["page", "rtt_ms", "tls_version", "allow_misses", "protocol"]
    counts = [
        tuple(row[f"requests_{name}"] for name in ("exact", "inexact", "missed", "not_made"))
        for row in rows
    ]
    assert counts[:4] == [
        ("124", "0", "3", "0"), ("118", "6", "0", "0"), ("274", "6", "0", "0"),
        ("280", "0", "3", "0"),
    ]  # fmt: skip
    assert set(counts[4:]) == {("124", "0", "0", "0"), ("280", "0", "0", "0")}
    assert [row["status"] for row in rows[:4]] == ["on: failed", "proven", "proven", "proven"]


def test_the_summary_lists_them_trial_by_trial(tls: Path) -> None:
    summary: dict[str, Any] = json.loads((tls / "summary.json").read_text())
    cell = summary["cells"][2]
    assert cell["coverage"] == {"exact": 59, "inexact": 3, "missed": 0, "not_made": 0, "loads": 1,
                                "pinned": 0, "sockets": 0, "talks": 0,
                                    "talks_inexact": 0, "due": 0, "due_bytes": 0,
                                "made_bytes": 0, "made_up": 0, "made_up_bytes": 0}  # fmt: skip
    (trial,) = cell["trials"]
    assert trial["pinned"] is False
    assert [one["asked"][-6:] for one in trial["replay"]["inexact"]] == [
        "170000", "170001", "170002",
    ]  # fmt: skip
    failed = summary["cells"][1]["trials"][0]
    assert failed["outcome"] == "failed" and failed["plt_ms"] is None
    assert len(failed["replay"]["missed"]) == 3


def test_the_report_shows_what_was_not_exact(tls: Path) -> None:
    source = (tls / "report.html").read_text()
    replay = source[source.index('<section id="replay">') : source.index('<section id="proof">')]
    assert "98.89 % of 1,622 requests were answered exactly; 12 inexactly, 6 missed." in replay
    assert replay.count("✗ missed") == 6 and replay.count("△ inexact") == 6
    assert "(unreached) https://new.example.test/" in replay
    assert "slot=0&amp;t=99</td><td>2</td>" in replay
    result = source[source.index('<section id="result">') : source.index('<section id="chart">')]
    assert "Replay, % exact" in result and "3 missed" in result
    assert '<th scope="col">TLS</th>' in result.replace(' rowspan="2"', "")
    proof = source[source.index('<section id="proof">') :]
    assert "TLS 1.3: 159,040 of 212,016 bytes of ClientHello (75.0 %) rode in the SYNs" in proof
    assert "TLS 1.2: 52,140 of 52,140 bytes of ClientHello (100.0 %) rode in the SYNs" in proof
    assert "<td>37,860</td><td>28,400</td>" in proof


def test_a_report_without_either_is_as_it_was(sample: Path) -> None:
    write_reports(sample)
    source = (sample / "report.html").read_text()
    assert "were answered exactly." in source
    assert "Replay, % exact" not in source and "ClientHello" not in source


def test_pinned_loads_are_told(tmp_path: Path) -> None:
    cells = tuple(replace(c, randomness="pinned") for c in (OFF, ON))
    records = [record(c) for c in cells]
    records = [replace(r, measured=replace(load_of(r), pinned=True)) for r in records if r.measured]
    write_reports(write_results(tmp_path, records, experiment(1, conditions=cells)))
    source = (tmp_path / "report.html").read_text()
    assert "In 2 loads scripts had pinned clocks and random numbers." in source
    assert "Randomness" in source
    assert render_table(tmp_path, 100).splitlines()[2].split()[3] == "pinned"


def test_the_terminal_says_it_in_a_sentence(tls: Path, sample: Path) -> None:
    text = " ".join(render_table(tls, 100).split())
    assert "Replay: 98.89 % of 1,622 requests were answered exactly; 12 inexactly" in text
    assert "HTTP/2" in text and "3 requests missed: GET https://static1.amazon.test/late.js" in text
    assert "Replay:" not in render_table(sample, 100)


def test_hellos_are_summed_over_proven_loads_with_fast_open(tmp_path: Path) -> None:
    records = [over_tls(record(c, seed)) for c in (OFF, ON) for seed in range(2)]
    records[3] = broken(records[3], "unproven")
    write_reports(write_results(tmp_path, records, experiment(2, conditions=(OFF, ON))))
    assert "TLS 1.3: 28,400 of 37,860 bytes" in (tmp_path / "report.html").read_text()


def test_results_of_the_first_schema_are_refused_by_name(tmp_path: Path, good: Record) -> None:
    write_results(tmp_path, [good], experiment(1, conditions=(OFF,)))
    path = tmp_path / "records.jsonl"
    path.write_text(path.read_text().replace('"schema":3', '"schema":1'))
    with pytest.raises(Exception, match="schema 1"):
        write_reports(tmp_path)


def test_an_empty_replay_is_no_division_by_zero(good: Record) -> None:
    assert count_record(replace(good, replay=Replay(0))).exact_pct is None
