from __future__ import annotations

from pathlib import Path

from analysis.report.publications import Rebuilt
from testbed.model import Record
from tests.analysis.sample import broken, record
from wings.papers.publications import rebuild_as
from wings.papers.tests.reproductions.sweeps import condition, results_of

# (Fast Open, requests per connection, window): load time in ms.
TIMES = {(False, 1, 3): 4000.0, (True, 1, 3): 3600.0, (False, None, 3): 3000.0,
         (False, 1, 32): 3800.0, (True, None, 3): 2900.0, (True, 1, 32): 3500.0,
         (False, None, 32): 2500.0, (True, None, 32): 2400.0}  # fmt: skip


def loads(page: str = "amazon") -> list[Record]:
    return [
        record(condition(page, 100.0, tfo=tfo, requests_per_connection=reuse, initcwnd_segments=w),
               0, plt_ms) for (tfo, reuse, w), plt_ms in TIMES.items()
    ]  # fmt: skip


def rebuilt(folder: Path, records: list[Record]) -> Rebuilt:
    found = rebuild_as(results_of(folder, records, "reuse-initcwnd"), None)
    assert found is not None
    return found


def test_what_each_mechanism_saves_alone_together_and_last(tmp_path: Path) -> None:
    (grid,) = rebuilt(tmp_path, loads()).tables
    row = dict(zip(grid.columns, grid.rows[0], strict=True))
    assert row == {"Page": "amazon", "RTT (ms)": 100.0, "Load without any (s)": 4.0,
                   "Fast Open (%)": 10.0, "Reuse (%)": 25.0, "Window (%)": 5.0,
                   "All three (%)": 40.0, "Fast Open after the others (%)": 4.0,
                   "Pays most": "reuse"}  # fmt: skip
    assert "1 request on a connection and a window of 3" in grid.note


def test_two_maps_for_each_page(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, [*loads("amazon"), *loads("wsj")])
    assert [figure.name for figure in found.figures] == [
        "reuse-saving-amazon", "reuse-plt-amazon", "reuse-saving-wsj", "reuse-plt-wsj",
    ]  # fmt: skip
    # 400 of 4000 ms at most, 100 of 3000 ms at least.
    assert "(3.3 to 10.0 %)" in found.figures[0].caption


def test_a_missing_load_leaves_its_fields_empty(tmp_path: Path) -> None:
    records = loads()
    records[2] = broken(records[2], "timeout")  # reuse alone
    found = rebuilt(tmp_path, records)
    (row,) = found.tables[0].rows
    assert row[3:] == (10.0, None, 5.0, 40.0, 4.0, None)
    assert "Requests per connection any" in found.tables[0].note


def test_one_arm_alone_still_has_its_map(tmp_path: Path) -> None:
    found = rebuilt(tmp_path, [one for one in loads() if not one.trial.linked.tcp.tfo])
    assert [figure.name for figure in found.figures] == ["reuse-plt-amazon"]


def test_each_larger_window_has_a_table_of_its_own(tmp_path: Path) -> None:
    ten = record(condition("amazon", 100.0, tfo=False, requests_per_connection=1,
                           initcwnd_segments=10), 0, 3000.0)  # fmt: skip
    middle, large = rebuilt(tmp_path, [*loads(), ten]).tables
    assert middle.title == "What each mechanism saves (a window of 10)"
    assert dict(zip(middle.columns, middle.rows[0], strict=True))["Window (%)"] == 25.0
    assert large.title == "What each mechanism saves (a window of 32)"
    assert dict(zip(large.columns, large.rows[0], strict=True))["Window (%)"] == 5.0
