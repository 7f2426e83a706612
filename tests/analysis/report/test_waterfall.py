from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.kinds.page_load import waterfall
from analysis.kinds.page_load.waterfall import Waterfalls, choose, gather_waterfalls
from analysis.records import requests as har_files
from analysis.records.cells import Cell, cells_of, flatten
from analysis.records.requests import HarError, parse_har
from analysis.records.results import judge, read_results
from analysis.tables.table import ResultTable, make_table
from testbed.model import Record
from tests.analysis.sample import broken, conditions, har, record
from tests.measured import load_of

OFF, ON = conditions(["amazon"], [100.0])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def table_of(*cells: Cell) -> ResultTable:
    return make_table(cells, None)


def sample_table(sample: Path) -> ResultTable:
    return make_table(cells_of(read_results(sample)), None)


def store(folder: Path, one: Record, content: bytes) -> Cell:
    path = folder / "trials" / one.trial_id / "load.har"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return Cell(flatten(one.trial.condition), (replace(one, artefacts={}),), 1)


def test_times_are_tenths_of_milliseconds_since_the_start() -> None:
    one = record(OFF, 0, 1000.0)
    entry: dict[str, Any] = har(load_of(one))["log"]["entries"][0]
    entry["startedDateTime"] = "2026-01-01T01:00:00.0315004+01:00"
    entry["timings"] = {"blocked": 1.04, "dns": -1, "connect": 20, "send": 0.1, "wait": 100.26,
                        "receive": 5}  # fmt: skip
    found = Waterfalls()
    pages = [{"startedDateTime": "2026-01-01T00:00:00Z"}]
    assert found.add(one, {"entries": [entry], "pages": pages})
    assert found.loads == [
        {"id": one.trial_id, "plt": 10000,
         "rows": [[0, 315, 10, 0, 200, 1, 1003, 50, 200, 41838]]}
    ]  # fmt: skip
    assert found.urls == ["http://www.amazon.test/"]


def test_urls_are_kept_once(tmp_path: Path) -> None:
    cells = []
    for condition in (OFF, ON):
        one = record(condition)
        cells.append(store(tmp_path, one, json.dumps(har(load_of(one))).encode()))
    found = gather_waterfalls(tmp_path, table_of(*cells))
    assert len(found.loads) == 2
    assert len(found.urls) == len(set(found.urls)) < sum(len(x["rows"]) for x in found.loads)
    assert found.left_out == {}


def test_every_row_has_its_first_before_any_has_its_second(sample: Path) -> None:
    table = sample_table(sample)
    firsts = [r.trial for r in list(choose(table))[:24]]
    assert len({trial.condition for trial in firsts}) == 24
    assert sorted({trial.seed for trial in firsts}) == [0, 1]  # where seed 0 does not count


def test_both_arms_of_a_block_follow_each_other(sample: Path) -> None:
    first, second, *_ = (r.trial for r in choose(sample_table(sample)))
    assert (first.linked.tcp.tfo, second.linked.tcp.tfo) == (False, True)
    assert (first.page, first.seed) == (second.page, second.seed)


def test_a_block_that_counts_in_both_arms_goes_first() -> None:
    bad = broken(record(ON, 0), "unproven")
    cells = [
        Cell(flatten(OFF), (record(OFF, 0), record(OFF, 1)), 2),
        Cell(flatten(ON), (bad, record(ON, 1)), 2),
    ]
    chosen = list(choose(table_of(*cells)))
    assert [r.trial.seed for r in chosen] == [1, 1, 0, 0]
    assert [judge(r)[0] for r in chosen] == ["ok", "ok", "ok", "unproven"]


def test_of_many_rows_some_at_even_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waterfall, "MAX_LOADS", 6)
    asked = conditions(["amazon"], [float(rtt) for rtt in range(1, 12)])
    table = table_of(*(Cell(flatten(c), (record(c),), 1) for c in asked))
    rtts = [r.trial.linked.link.rtt_ms for r in choose(table)]
    assert rtts == [1, 1, 6, 6, 11, 11]


def test_no_more_waterfalls_than_a_page_holds(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waterfall, "MAX_LOADS", 30)
    found = gather_waterfalls(sample, sample_table(sample))
    assert len(found.loads) == 30
    assert found.total == 117
    assert set(found.left_out.values()) == {waterfall.FULL}
    assert len(found.left_out) == 87


def test_files_of_waterfalls_that_are_not_shown_are_not_read(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waterfall, "MAX_LOADS", 2)
    read: list[str] = []

    def count_reading(folder: Path, one: Record) -> bytes:
        read.append(one.trial_id)
        return har_files.read_har_bytes(folder, one)

    monkeypatch.setattr(waterfall, "read_har_bytes", count_reading)
    found = gather_waterfalls(sample, sample_table(sample))
    assert read == [load["id"] for load in found.loads]


def test_the_data_budget_holds(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waterfall, "MAX_DATA_BYTES", 100_000)
    found = gather_waterfalls(sample, sample_table(sample))
    data = json.dumps([found.urls, found.loads], separators=(",", ":"))
    assert 0 < len(data) <= 100_000 + 1000
    assert len(found.loads) + len(found.left_out) == found.total == 117
    assert set(found.left_out.values()) == {waterfall.FULL}


def test_the_reading_budget_holds(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waterfall, "MAX_READ_BYTES", 1)
    assert len(gather_waterfalls(sample, sample_table(sample)).loads) == 1


def test_another_file_than_the_recorded_is_refused(tmp_path: Path) -> None:
    one = record(OFF)
    cell = store(tmp_path, one, json.dumps(har(load_of(one))).encode())
    cell = replace(cell, records=(replace(one, artefacts={"load.har": "0" * 64}),))
    found = gather_waterfalls(tmp_path, table_of(cell))
    assert not found.loads
    assert "SHA-256 differs" in found.left_out[one.trial_id]


@pytest.mark.parametrize("name", ["../../load.har", "/etc/load.har", "a/../../../load.har"])
def test_nothing_outside_the_folder_is_read(tmp_path: Path, name: str) -> None:
    one = replace(record(OFF), artefacts={name: "0" * 64})
    found = gather_waterfalls(tmp_path, table_of(Cell(flatten(OFF), (one,), 1)))
    assert "leads out" in found.left_out[one.trial_id]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"log": 1}', b'{"log": {"entries": {}}}', b"[" * 100_000, b"\xff\xfe"],
)
def test_what_is_no_har_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(HarError, match=r"load\.har"):
        parse_har(content)
    one = record(OFF)
    found = gather_waterfalls(tmp_path, table_of(store(tmp_path, one, content)))
    assert list(found.left_out) == [one.trial_id]


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har_files, "MAX_HAR_BYTES", 10)
    one = record(OFF)
    found = gather_waterfalls(tmp_path, table_of(store(tmp_path, one, b" " * 11)))
    assert "larger than" in found.left_out[one.trial_id]


@given(
    st.lists(
        JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "startedDateTime": JSON | st.datetimes().map(str),
                "timings": JSON | st.dictionaries(st.sampled_from(har_files.PHASES), JSON),
                "request": JSON | st.fixed_dictionaries({"url": JSON}),
                "response": JSON
                | st.dictionaries(st.sampled_from(["status", "bodySize", "_transferSize"]), JSON),
            },
        ),
        max_size=5,
    ),
    JSON,
)
def test_any_json_in_a_har_gives_plain_numbers(entries: list[Any], pages: Any) -> None:
    content = json.dumps({"log": {"entries": entries, "pages": pages}}).encode()
    found = Waterfalls()
    assert found.add(record(OFF), parse_har(content))
    (load,) = found.loads
    for number, *values in load["rows"]:
        assert 0 <= number < len(found.urls)
        assert len(found.urls[number]) <= har_files.MAX_URL_CHARS + 1
        assert len(values) == 9 and all(type(value) is int for value in values)
        assert all(value >= 0 for value in values[1:])
